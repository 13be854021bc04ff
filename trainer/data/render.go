package data

import "math"

// The variation between images of the same digit.
const (
	rotationDeviation = .18 // radians
	shearDeviation    = .18 // of x with y
	scaleDeviation    = .12 // around 1
	shiftDeviation    = .05 // as a fraction of the side
	vertexDeviation   = .012
	strokeMin         = .035 // from the pen's line to where ink is half as dark
	strokeMax         = .065
	edgeWidth         = .008 // of the logistic fall from ink to paper
	pixelDeviation    = .08  // of full ink
)

// pen draws digits, one at a time, into images of height x width. It belongs to
// one goroutine.
type pen struct {
	height, width int
	glyphs        [10][]stroke
	edge          *logistic
	noise         noise
	near          []float64 // [height*width]: squared distance to the pen's line
	path          []point   // the stroke being drawn, as placed by the hand
}

func newPen(height, width int) *pen {
	return &pen{
		height: height, width: width,
		glyphs: glyphs(), edge: newLogistic(), near: make([]float64, height*width),
	}
}

// draw draws a digit; (seed, split) determine everything else.
func (p *pen) draw(dst []byte, digit int, seed, split uint64) {
	p.noise.seed(seed, split)
	h := newHand(&p.noise)
	for i := range p.near {
		p.near[i] = math.Inf(1)
	}
	reach := h.stroke + mul(edgeWidth, logisticSpan)
	for _, s := range p.glyphs[digit] {
		p.path = p.path[:0]
		for _, v := range s {
			p.path = append(p.path, h.place(v, &p.noise))
		}
		for i := 1; i < len(p.path); i++ {
			p.mark(p.path[i-1], p.path[i], reach)
		}
	}
	for i, d2 := range p.near {
		ink := 0.0
		if !math.IsInf(d2, 1) {
			ink = p.edge.at((math.Sqrt(d2) - h.stroke) / edgeWidth)
		}
		ink += p.noise.normal(pixelDeviation)
		dst[i] = byte(mul(min(max(ink, 0), 1), 255) + .5)
	}
}

// mark lowers near to the squared distance from the segment a-b, for the pixels that the
// segment can darken.
func (p *pen) mark(a, b point, reach float64) {
	dx, dy := b.x-a.x, b.y-a.y
	length2 := mul(dx, dx) + mul(dy, dy)
	left, right := pixels(min(a.x, b.x)-reach, max(a.x, b.x)+reach, p.width)
	top, bottom := pixels(min(a.y, b.y)-reach, max(a.y, b.y)+reach, p.height)
	for row := top; row < bottom; row++ {
		py := (float64(row)+.5)/float64(p.height) - a.y
		for col := left; col < right; col++ {
			px := (float64(col)+.5)/float64(p.width) - a.x
			t := 0.0
			if length2 > 0 {
				t = min(max((mul(px, dx)+mul(py, dy))/length2, 0), 1)
			}
			ex, ey := px-mul(t, dx), py-mul(t, dy)
			at := row*p.width + col
			p.near[at] = min(p.near[at], mul(ex, ex)+mul(ey, ey))
		}
	}
}

// pixels returns the range of pixel indices, of n, that covers lo .. hi of the
// unit interval.
func pixels(lo, hi float64, n int) (first, end int) {
	first = int(mul(min(max(lo, 0), 1), float64(n)))
	end = min(int(mul(min(max(hi, 0), 1), float64(n)))+1, n)
	return first, end
}

// hand describes one writer on one occasion: an affine map around the centre of the square,
// and the width of the pen.
type hand struct {
	xx, xy, yx, yy float64
	dx, dy         float64
	stroke         float64
}

// newHand draws a hand. The order of the draws is part of the data's definition.
func newHand(n *noise) hand {
	sin, cos := sincos(n.normal(rotationDeviation))
	shear := n.normal(shearDeviation)
	scale := 1 + n.normal(scaleDeviation)
	h := hand{dx: n.normal(shiftDeviation), dy: n.normal(shiftDeviation), stroke: n.uniform(strokeMin, strokeMax)}
	// rotation * shear * scale
	h.xx, h.xy = mul(scale, cos), mul(scale, mul(cos, shear)-sin)
	h.yx, h.yy = mul(scale, sin), mul(scale, mul(sin, shear)+cos)
	return h
}

// place returns where the hand puts a vertex, including its tremor.
func (h hand) place(v point, n *noise) point {
	x := v.x - .5 + n.normal(vertexDeviation)
	y := v.y - .5 + n.normal(vertexDeviation)
	return point{
		x: .5 + mul(h.xx, x) + mul(h.xy, y) + h.dx,
		y: .5 + mul(h.yx, x) + mul(h.yy, y) + h.dy,
	}
}

package cpu

import (
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/portable"
)

// softmaxBlock is the number of elements, in whole rows, whose exponentials are computed
// at once: short rows would leave most of a kernel's lanes empty. A block fits the L1 cache.
const softmaxBlock = 4096

// Softmax implements nn.Dense. Exponentials are float32, and their sum is that of dot.
func (b *Backend) Softmax(y, x nn.Buffer, width int) {
	ys, ones := y.Float32s(), b.ones(width)
	xs := x.Float32s()[:len(ys)]
	for rows := max(1, softmaxBlock/max(1, width)) * width; len(ys) > 0; {
		n := min(rows, len(ys))
		softmaxRows(ys[:n], xs[:n], ones)
		ys, xs = ys[n:], xs[n:]
	}
}

// softmaxRows is Softmax for rows as long as ones.
func softmaxRows(y, x, ones []float32) {
	eachRow(y, len(ones), func(row []float32) {
		top := x[0]
		for _, v := range x[:len(row)] {
			if v > top { // faster than max; a NaN makes the sum NaN anyway
				top = v
			}
		}
		for i, v := range x[:len(row)] {
			row[i] = v - top
		}
		x = x[len(row):]
	})
	expLoop(y[fastExp(y, 0):], 0)
	eachRow(y, len(ones), func(row []float32) {
		share := 1 / dot(row, ones)
		scaleLoop(row[fastScale(row, share):], share)
	})
}

// CrossEntropy implements nn.Dense. The sum over rows is taken in float64.
func (b *Backend) CrossEntropy(dlogits, loss, p, labels nn.Buffer) {
	ps, ds := p.Float32s(), dlogits.Float32s()
	width := columns(p, labels)
	var sum float64
	for i, label := range labels.Int32s() {
		row := ps[i*width : (i+1)*width]
		sum -= portable.Log(max(float64(row[label]), smallestNormal))
		if len(ds) > 0 {
			d := ds[i*width : (i+1)*width]
			copy(d, row)
			d[label]--
		}
	}
	loss.Float32s()[0] += float32(sum)
}

// SmoothedCrossEntropy implements nn.Dense. The sum is taken in float64.
func (b *Backend) SmoothedCrossEntropy(dlogits, loss, p, labels nn.Buffer, smoothing float32) {
	ps, ds := p.Float32s(), dlogits.Float32s()
	width := columns(p, labels)
	on, off := 1-smoothing, smoothing/float32(max(1, width-1))
	var sum float64
	for i, label := range labels.Int32s() {
		for j := range width {
			q, at := off, i*width+j
			if j == int(label) {
				q = on
			}
			v := ps[at]
			sum -= float64(float64(q) * portable.Log(max(float64(v), smallestNormal))) // the conversion forbids a fused multiply-add
			if len(ds) > 0 {
				ds[at] = v - q
			}
		}
	}
	loss.Float32s()[0] += float32(sum)
}

// smallestNormal is the smallest normal float32. It keeps the loss of an impossible
// class finite (87.3).
const smallestNormal = 0x1p-126

// Correct implements nn.Dense.
func (b *Backend) Correct(count, scores, labels nn.Buffer) {
	width := columns(scores, labels)
	lo, correct := 0, 0
	for _, label := range labels.Int32s() {
		if argmax(scores.Float32s()[lo:lo+width]) == int(label) {
			correct++
		}
		lo += width
	}
	count.Float32s()[0] += float32(correct)
}

// argmax returns the first index of the largest element.
func argmax(v []float32) int {
	best := 0
	for i, x := range v {
		if x > v[best] {
			best = i
		}
	}
	return best
}

// columns returns the row width of v, which has one row per label.
func columns(v, labels nn.Buffer) int { return v.Len() / max(1, labels.Len()) }

package cpu

import "github.com/ringtrain/ringtrain/nn"

// A packing rearranges a few images so that one axpy covers all of them. Each channel of
// an image, with its padding, is split into Stride² phases: phase (p, q) has the pixels
// (i*Stride+p, j*Stride+q). With that, neighbouring windows start at neighbouring elements
// whatever the stride. The images of one phase of one channel follow each other, area
// elements apart.
//
// The outputs of one filter lie in a run in the same way: output (i, j) of image m is at
// m*area + i*pitch + j.
type packing struct {
	nn.Window
	images              int // in one packing
	height, pitch, area int // of one phase
	outHeight, outWidth int
	starts              []int // where the first window finds each element of a filter
	direct              bool  // rows of images are packed as they are
	packed, run         []float32
}

// runLength is how many elements of outputs a packing has, if the images are not larger.
// The run and one channel of a packing then fit the L1 cache.
const runLength = 2048

func (b *Backend) newPacking(s nn.Window, rows int) *packing {
	p := &packing{Window: s, outHeight: s.OutHeight(), outWidth: s.OutWidth()}
	p.height, p.pitch = ceilDiv(s.Height+2*s.Padding, s.Stride), ceilDiv(s.Width+2*s.Padding, s.Stride)
	p.area = p.height * p.pitch
	p.images = max(1, min(rows, runLength/p.area))
	p.direct = s.Stride == 1 && s.Padding == 0 && (s.Channels == 1 || p.images == 1)
	p.starts = make([]int, 0, s.Channels*s.Size*s.Size)
	for c := range s.Channels {
		for u := range s.Size {
			for v := range s.Size {
				p.starts = append(p.starts, p.plane(c, u%s.Stride, v%s.Stride)+u/s.Stride*p.pitch+v/s.Stride)
			}
		}
	}
	if !p.direct {
		p.packed = b.temp.take(p.plane(s.Channels, 0, 0))
		clear(p.packed)
	}
	p.run = b.temp.take(p.length(p.images))
	clear(p.run)
	return p
}

// plane returns the offset of a phase of a channel of the first image.
func (p *packing) plane(channel, row, column int) int {
	return ((channel*p.Stride+row)*p.Stride + column) * p.images * p.area
}

// length returns the length of a run of images.
func (p *packing) length(images int) int {
	return (images-1)*p.area + (p.outHeight-1)*p.pitch + p.outWidth
}

// each calls f with the numbers of the first and of the last image, plus 1, of every
// packing.
func (p *packing) each(rows int, f func(lo, hi int)) {
	for lo := 0; lo < rows; lo += p.images {
		f(lo, min(lo+p.images, rows))
	}
}

// pack returns x, rows of images, packed.
func (p *packing) pack(x []float32) []float32 {
	if p.direct {
		return x
	}
	p.lines(len(x)/p.In(), func(at, row, column int) {
		line, to := x[row:row+p.Width], p.packed[at:]
		if p.Stride == 1 {
			copy(to[p.Padding:], line)
			return
		}
		for i, j := column, 0; i < p.Width; i, j = i+p.Stride, j+1 {
			if i >= 0 {
				to[j] = line[i]
			}
		}
	})
	return p.packed
}

// unpack is the inverse of pack.
func (p *packing) unpack(x []float32) {
	p.lines(len(x)/p.In(), func(at, row, column int) {
		line, from := x[row:row+p.Width], p.packed[at:]
		if p.Stride == 1 {
			copy(line, from[p.Padding:])
			return
		}
		for i, j := column, 0; i < p.Width; i, j = i+p.Stride, j+1 {
			if i >= 0 {
				line[i] = from[j]
			}
		}
	})
}

// lines calls f for every row of pixels and every phase that has some of them: at is where
// the packed row starts, row where the row of the image starts, and column is the column
// of the image at the start of the packed row, negative in the padding.
func (p *packing) lines(images int, f func(at, row, column int)) {
	row := 0
	for m := range images {
		for c := range p.Channels {
			for i := range p.Height {
				y := i + p.Padding
				for q := range p.Stride {
					f(p.plane(c, y%p.Stride, q)+m*p.area+y/p.Stride*p.pitch, row, q-p.Padding)
				}
				row += p.Width
			}
		}
	}
}

// narrow copies filter o of the run to y, the outputs of some images with all filters.
func (p *packing) narrow(y []float32, o, filters int) {
	plane := p.Plane()
	for m := range len(y) / (filters * plane) {
		to := y[(m*filters+o)*plane:][:plane]
		for i := range p.outHeight {
			copy(to[i*p.outWidth:][:p.outWidth], p.run[m*p.area+i*p.pitch:])
		}
	}
}

// widen is the inverse of narrow. It leaves the gaps unchanged.
func (p *packing) widen(y []float32, o, filters int) {
	plane := p.Plane()
	for m := range len(y) / (filters * plane) {
		from := y[(m*filters+o)*plane:][:plane]
		for i := range p.outHeight {
			copy(p.run[m*p.area+i*p.pitch:][:p.outWidth], from[i*p.outWidth:])
		}
	}
}

func ceilDiv(n, d int) int { return (n + d - 1) / d }

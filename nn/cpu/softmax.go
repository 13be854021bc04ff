package cpu

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// Softmax implements nn.Dense. Exponentials and their sum are float64.
func (b *Backend) Softmax(y, x nn.Buffer, width int) {
	xs := x.Float32s()
	lo := 0
	eachRow(y.Float32s(), width, func(ys []float32) {
		softmaxRow(ys, xs[lo:lo+width])
		lo += width
	})
}

func softmaxRow(y, x []float32) {
	top := x[0]
	for _, v := range x {
		top = max(top, v)
	}
	var sum float64
	for i, v := range x {
		e := math.Exp(float64(v - top))
		sum += e
		y[i] = float32(e)
	}
	scale := float32(1 / sum)
	for i := range y {
		y[i] *= scale
	}
}

// CrossEntropy implements nn.Dense. The sum over rows is taken in float64.
func (b *Backend) CrossEntropy(dlogits, loss, p, labels nn.Buffer) {
	ps, ds := p.Float32s(), dlogits.Float32s()
	width := columns(p, labels)
	var sum float64
	for i, label := range labels.Int32s() {
		row := ps[i*width : (i+1)*width]
		sum -= math.Log(max(float64(row[label]), smallestNormal))
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
			sum -= float64(float64(q) * math.Log(max(float64(v), smallestNormal))) // the conversion forbids a fused multiply-add
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

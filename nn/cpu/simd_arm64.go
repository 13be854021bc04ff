//go:build !noasm && !race

package cpu

const (
	block = 16 // kernels take a multiple of this many elements
	// stretch is the number of elements per kernel call, a few microseconds of work: the
	// runtime cannot preempt a goroutine inside assembly.
	stretch = 1 << 15
)

// eachStretch calls a kernel with the whole blocks of n elements, a stretch at a time, and
// returns their number.
func eachStretch(n int, kernel func(lo, n int)) int {
	n &^= block - 1
	for lo := 0; lo < n; lo += stretch {
		kernel(lo, min(stretch, n-lo))
	}
	return n
}

// The fast functions process the leading elements and return their number: all whole
// blocks.

func fastAdd(y, v []float32) int {
	return eachStretch(len(y), func(lo, n int) { neonAdd(&y[lo], &v[lo], n) })
}

func fastSum(y, x, z []float32) int {
	return eachStretch(len(y), func(lo, n int) { neonSum(&y[lo], &x[lo], &z[lo], n) })
}

func fastScale(y []float32, a float32) int {
	return eachStretch(len(y), func(lo, n int) { neonScale(&y[lo], n, a) })
}

func fastAxpy(y []float32, a float32, x []float32) int {
	return eachStretch(len(y), func(lo, n int) { neonAxpy(&y[lo], &x[lo], n, a) })
}

func fastRelu(y, x []float32) int {
	return eachStretch(len(y), func(lo, n int) { neonRelu(&y[lo], &x[lo], n) })
}

func fastReluGrad(dx, dy, y []float32, scale float32) int {
	return eachStretch(len(dx), func(lo, n int) { neonReluGrad(&dx[lo], &dy[lo], &y[lo], n, scale) })
}

func fastMax(y, v []float32) int {
	return eachStretch(len(y), func(lo, n int) { neonMax(&y[lo], &v[lo], n) })
}

func fastDot(s *[16]float32, x, y []float32) int {
	return eachStretch(len(x), func(lo, n int) { neonDot(s, &x[lo], &y[lo], n) })
}

// fastSquares takes at most one block of nn.BlockSize.
func fastSquares(s *[16]float64, g, w []float32, scale, l2 float32) int {
	return eachStretch(len(g), func(lo, n int) { neonSquares(s, &g[lo], &w[lo], n, scale, l2) })
}

type updateKernel struct{ terms *terms }

func newUpdateKernel(t *terms) updateKernel { return updateKernel{t} }

// adam takes at most one piece, and so does sgd.
func (k updateKernel) adam(o operands) int {
	n := len(o.w) &^ (block - 1)
	if n > 0 {
		neonAdam(&o.w[0], &o.g[0], &o.m[0], &o.v[0], o.firstAverage(), n, k.terms)
	}
	return n
}

func (k updateKernel) sgd(o operands) int {
	n := len(o.w) &^ (block - 1)
	if n > 0 {
		neonSGD(&o.w[0], &o.g[0], o.firstAverage(), n, k.terms)
	}
	return n
}

// firstAverage returns nil if there are no averages.
func (o operands) firstAverage() *float32 {
	if len(o.average) == 0 {
		return nil
	}
	return &o.average[0]
}

// normalConstants are the constants of exp and normal in the order in which the kernels read
// them.
var normalConstants = func() *[25]float32 {
	list := append([]float32{expLeast, expMost, log2e, roundTo, ln2Hi, ln2Lo}, expTerms[:]...)
	list = append(append(list, 1, -.5, slope), normalTerms[:]...)
	return (*[25]float32)(append(list, inverseRoot2Pi))
}()

func fastExp(y []float32, top float32) int {
	return eachStretch(len(y), func(lo, n int) { neonExp(&y[lo], n, top, normalConstants) })
}

func fastGelu(y, x []float32) int {
	return eachStretch(len(y), func(lo, n int) { neonGelu(&y[lo], &x[lo], n, normalConstants) })
}

func fastGeluGrad(dx, dy, x []float32) int {
	return eachStretch(len(dx), func(lo, n int) { neonGeluGrad(&dx[lo], &dy[lo], &x[lo], n, normalConstants) })
}

// A dropState is what the dropout kernel reads.
type dropState struct {
	columns          [4]uint32 // of the first four counters
	row, layer, step uint32    // of all
	threshold        uint32
	scale            float32
	keys             [2 * philoxRounds]uint32
}

// A dropKernel is the state of the dropout kernel for one mask.
type dropKernel struct {
	mask  mask
	state dropState
}

func newDropKernel(m mask) *dropKernel {
	return &dropKernel{mask: m, state: dropState{threshold: m.threshold, scale: m.scale, keys: m.roundKeys()}}
}

// fast applies the mask to the leading elements of a row and returns their number.
func (k *dropKernel) fast(y, x []float32, row int) int {
	return eachStretch(len(y), func(lo, n int) {
		_, c := k.mask.stream.Counter(k.mask.layer, row, lo/4)
		for i := range k.state.columns {
			k.state.columns[i] = c[0] + uint32(i)
		}
		k.state.row, k.state.layer, k.state.step = c[1], c[2], c[3]
		neonDropout(&y[lo], &x[lo], n, &k.state)
	})
}

//go:build !noasm && !race

package cpu

import (
	"math"

	"golang.org/x/sys/cpu"
)

// hasAVX2 and hasAVX512 say which kernels the processor can run.
var (
	hasAVX2   = cpu.X86.HasAVX2
	hasAVX512 = cpu.X86.HasAVX2 && cpu.X86.HasAVX512F
)

const (
	// lanes is the number of float32 in a register. Kernels take a multiple of lanes, or
	// of pair where stated.
	lanes = 8
	pair  = 2 * lanes
	// stretch is the number of elements per kernel call, a few microseconds of work: the
	// runtime cannot preempt a goroutine inside assembly.
	stretch = 1 << 15
)

// whole returns how many of n elements form whole blocks for a kernel.
func whole(n, block int) int {
	if !hasAVX2 {
		return 0
	}
	return n &^ (block - 1)
}

// The fast functions process the leading elements and return their number: all whole
// blocks, or 0 where there are no kernels.

func fastAdd(y, v []float32) int {
	n := whole(len(y), lanes)
	for lo := 0; lo < n; lo += stretch {
		hi := min(lo+stretch, n)
		addBlocks(y[lo:hi], v[lo:hi])
	}
	return n
}

func fastSum(y, x, z []float32) int {
	n := whole(len(y), lanes)
	for lo := 0; lo < n; lo += stretch {
		hi := min(lo+stretch, n)
		sumBlocks(y[lo:hi], x[lo:hi], z[lo:hi])
	}
	return n
}

func fastScale(y []float32, a float32) int {
	n := whole(len(y), lanes)
	for lo := 0; lo < n; lo += stretch {
		scaleBlocks(y[lo:min(lo+stretch, n)], a)
	}
	return n
}

func fastAxpy(y []float32, a float32, x []float32) int {
	n := whole(len(y), lanes)
	for lo := 0; lo < n; lo += stretch {
		hi := min(lo+stretch, n)
		axpyBlocks(y[lo:hi], a, x[lo:hi])
	}
	return n
}

func fastRelu(y, x []float32) int {
	n := whole(len(y), lanes)
	for lo := 0; lo < n; lo += stretch {
		hi := min(lo+stretch, n)
		reluBlocks(y[lo:hi], x[lo:hi])
	}
	return n
}

func fastReluGrad(dx, dy, y []float32, scale float32) int {
	n := whole(len(dx), lanes)
	for lo := 0; lo < n; lo += stretch {
		hi := min(lo+stretch, n)
		reluGradBlocks(dx[lo:hi], dy[lo:hi], y[lo:hi], scale)
	}
	return n
}

func fastMax(y, v []float32) int {
	n := whole(len(y), lanes)
	for lo := 0; lo < n; lo += stretch {
		hi := min(lo+stretch, n)
		maxBlocks(y[lo:hi], v[lo:hi])
	}
	return n
}

func fastDot(s *[16]float32, x, y []float32) int {
	n := whole(len(x), pair)
	for lo := 0; lo < n; lo += stretch {
		hi := min(lo+stretch, n)
		dotBlocks(s, x[lo:hi], y[lo:hi])
	}
	return n
}

// fastSquares takes at most one block of nn.BlockSize.
func fastSquares(s *[16]float64, g, w []float32, scale, l2 float32) int {
	n := whole(len(g), pair)
	if hasAVX512 {
		squaresWide(s, g[:n], w[:n], scale, l2)
	} else {
		squaresBlocks(s, g[:n], w[:n], scale, l2)
	}
	return n
}

// An updateKernel holds each term in every lane of a register.
type updateKernel struct{ terms [termCount][lanes]float32 }

func newUpdateKernel(t *terms) *updateKernel {
	k := new(updateKernel)
	for i, v := range t {
		for j := range k.terms[i] {
			k.terms[i][j] = v
		}
	}
	return k
}

// adam takes at most one piece, and so does sgd.
func (k *updateKernel) adam(o operands) int {
	n := whole(len(o.w), lanes)
	if len(o.average) > 0 {
		adamAverageBlocks(o.w[:n], o.g, o.m, o.v, o.average, &k.terms)
	} else {
		adamBlocks(o.w[:n], o.g, o.m, o.v, &k.terms)
	}
	return n
}

func (k *updateKernel) sgd(o operands) int {
	n := whole(len(o.w), lanes)
	if len(o.average) > 0 {
		sgdAverageBlocks(o.w[:n], o.g, o.average, &k.terms)
	} else {
		sgdBlocks(o.w[:n], o.g, &k.terms)
	}
	return n
}

// The layout of dropKernel.state. Pairs of round keys follow at the end.
const (
	dropColumn = iota
	dropRow
	dropLayer
	dropStep
	dropNext // increment that advances four counters
	dropLimit
	dropFactor
	dropKeys
)

// A dropKernel is the state of the dropout kernel for one mask.
type dropKernel struct {
	mask  mask
	state [dropKeys + 2*philoxRounds][4]uint64
}

func newDropKernel(m mask) *dropKernel {
	k := &dropKernel{mask: m}
	k.set(dropNext, 4)
	limit, factor := uint64(m.threshold-1), uint64(math.Float32bits(m.scale)) // compared as signed words: -1 for 0
	k.set(dropLimit, limit<<32|limit&math.MaxUint32)
	k.set(dropFactor, factor<<32|factor)
	for i, key := range m.roundKeys() {
		k.set(dropKeys+i, uint64(key))
	}
	return k
}

func (k *dropKernel) set(i int, v uint64) { k.state[i] = [4]uint64{v, v, v, v} }

// fast applies the mask to the leading elements of a row and returns their number.
func (k *dropKernel) fast(y, x []float32, row int) int {
	n := whole(len(y), pair)
	for lo := 0; lo < n; lo += stretch {
		hi := min(lo+stretch, n)
		_, c := k.mask.stream.Counter(k.mask.layer, row, lo/4)
		for i, word := range c {
			k.set(i, uint64(word))
		}
		// The kernel unpacks counters in the order 0 2 1 3.
		for i, after := range [4]uint64{0, 2, 1, 3} {
			k.state[dropColumn][i] += after
		}
		dropoutBlocks(y[lo:hi], x[lo:hi], &k.state)
	}
	return n
}

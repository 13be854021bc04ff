//go:build !noasm && !race

package cpu

import (
	"math"

	"golang.org/x/sys/cpu"
)

var hasAVX2 = cpu.X86.HasAVX2

const (
	// lanes is the number of float32 in a register. Kernels take a multiple of
	// it, or where they say so of a pair.
	lanes = 8
	pair  = 2 * lanes
	// stretch is what one call of a kernel gets: the runtime cannot stop a
	// goroutine inside assembly, and this is some microseconds.
	stretch = 1 << 15
)

// whole is how many of n elements are in blocks that a kernel can take.
func whole(n, block int) int {
	if !hasAVX2 {
		return 0
	}
	return n &^ (block - 1)
}

// The fast functions do the first elements and return how many: all whole
// blocks, or none where there are no kernels.

func fastAdd(y, v []float32) int {
	n := whole(len(y), lanes)
	for lo := 0; lo < n; lo += stretch {
		hi := min(lo+stretch, n)
		addBlocks(y[lo:hi], v[lo:hi])
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

func fastFollow(a, w []float32, share float32) int {
	n := whole(len(a), lanes)
	for lo := 0; lo < n; lo += stretch {
		hi := min(lo+stretch, n)
		followBlocks(a[lo:hi], w[lo:hi], share)
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

// fastSquares is given one block of nn.BlockSize at most.
func fastSquares(s *[16]float64, g, w []float32, l2 float32) int {
	n := whole(len(g), pair)
	squaresBlocks(s, g[:n], w[:n], l2)
	return n
}

// An updateKernel holds a register full of each term.
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

// adam is given one block of nn.BlockSize at most, as is sgd.
func (k *updateKernel) adam(w, g, m, v []float32) int {
	n := whole(len(w), lanes)
	adamBlocks(w[:n], g[:n], m[:n], v[:n], &k.terms)
	return n
}

func (k *updateKernel) sgd(w, g []float32) int {
	n := whole(len(w), lanes)
	sgdBlocks(w[:n], g[:n], &k.terms)
	return n
}

// Additions to the two words of a Philox key from round to round.
const (
	philoxW0     = 0x9E3779B9
	philoxW1     = 0xBB67AE85
	philoxRounds = 10
)

// Where a dropKernel keeps what; the keys of the rounds follow in pairs.
const (
	dropColumn = iota
	dropRow
	dropLayer
	dropStep
	dropNext // what four counters further is
	dropLimit
	dropFactor
	dropKeys
)

// A dropKernel is the memory of the kernel of one mask.
type dropKernel struct {
	mask  mask
	state [dropKeys + 2*philoxRounds][4]uint64
}

func newDropKernel(m mask) *dropKernel {
	k := &dropKernel{mask: m}
	k.set(dropNext, 4)
	limit, factor := uint64(m.least-1), uint64(math.Float32bits(m.scale)) // a comparison of signed words: -1 for 0
	k.set(dropLimit, limit<<32|limit&math.MaxUint32)
	k.set(dropFactor, factor<<32|factor)
	key, _ := m.stream.Counter(m.layer, 0, 0)
	for r := range philoxRounds {
		k.set(dropKeys+2*r, uint64(key[0]))
		k.set(dropKeys+2*r+1, uint64(key[1]))
		key[0] += philoxW0
		key[1] += philoxW1
	}
	return k
}

func (k *dropKernel) set(i int, v uint64) { k.state[i] = [4]uint64{v, v, v, v} }

// fast drops the first elements of a row and returns how many.
func (k *dropKernel) fast(y, x []float32, row int) int {
	n := whole(len(y), pair)
	for lo := 0; lo < n; lo += stretch {
		hi := min(lo+stretch, n)
		_, c := k.mask.stream.Counter(k.mask.layer, row, lo/4)
		for i, word := range c {
			k.set(i, uint64(word))
		}
		// Counters stand in the order that the kernel unpacks them in.
		for i, after := range [4]uint64{0, 2, 1, 3} {
			k.state[dropColumn][i] += after
		}
		dropoutBlocks(y[lo:hi], x[lo:hi], &k.state)
	}
	return n
}

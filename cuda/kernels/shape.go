package kernels

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// A Shape is how a kernel divides its items among blocks of threads.
type Shape uint8

// The shapes.
const (
	// Elements has one element of the result per item. Any grid is correct.
	Elements Shape = iota
	// Rows has a row per item. Each warp computes one row after the other.
	Rows
	// Columns has a column per item. A block of 32 by 32 threads computes 32 columns.
	Columns
	// Blocks has nn.BlockSize elements per item. Each item is one block of threads.
	Blocks
	// Parts has nn.BlockSize elements per item. The second dimension of the grid is the number
	// of parts of an item: a power of two, large enough to keep the device busy.
	Parts
	// Taps has an element of dw or db per item. The second dimension of the grid is [Shares].
	Taps
	// Chains has a chain of small steps per item. Each item is one block of one warp.
	Chains
	// One is a single block, whatever the number of items.
	One
)

// threads is the number of threads of a block, and most that of One.
const (
	threads = 256
	most    = 1024
	warp    = 32
	perSM   = 8 // blocks of 256 threads that fill a multiprocessor
)

// A Dim is the size of a grid or a block.
type Dim struct{ X, Y, Z uint32 }

// Of returns the grid and the block for n items on a device with this number of
// multiprocessors. A grid is never empty, so a launch for 0 items is valid, except for Blocks,
// Parts and Chains, which need at least one item.
func (s Shape) Of(n, multiprocessors int) (grid, block Dim) {
	blocks := 1
	size := Dim{threads, 1, 1}
	switch s {
	case Elements:
		blocks = min(ceil(n, threads), perSM*max(1, multiprocessors))
	case Rows:
		blocks = min(ceil(n, threads/warp), perSM*max(1, multiprocessors))
	case Columns:
		blocks, size = ceil(n, warp), Dim{warp, warp, 1}
	case Blocks:
		blocks = n
	case Parts:
		parts := nn.BlockSize / threads
		for parts > 1 && n*parts > perSM*max(1, multiprocessors) {
			parts /= 2
		}
		return Dim{uint32(max(1, n)), uint32(parts), 1}, size
	case Taps:
		return Dim{uint32(max(1, n)), Shares, 1}, size
	case Chains:
		blocks, size.X = n, warp
	case One:
		size.X = most
	}
	return Dim{uint32(max(1, blocks)), 1, 1}, size
}

// Shares is the number of shares of the rows that conv2d_grad_parts sums separately, and so
// the number of partial sums of each element of the gradient.
const Shares = 16

func ceil(n, by int) int { return (n + by - 1) / by }

// A Window is the struct Window of the kernels.
type Window struct {
	Channels, Height, Width int32
	Size, Stride, Padding   int32
	OutHeight, OutWidth     int32
}

// NewWindow converts s to the kernels' struct.
func NewWindow(s nn.Window) Window {
	return Window{
		int32(s.Channels), int32(s.Height), int32(s.Width),
		int32(s.Size), int32(s.Stride), int32(s.Padding),
		int32(s.OutHeight()), int32(s.OutWidth()),
	}
}

// Heads is the struct Heads of the kernels.
type Heads struct {
	Positions, Heads, Width, Causal int32
	Scale                           float32
}

// NewHeads converts a to the kernels' struct.
func NewHeads(a nn.Heads) Heads {
	h := Heads{Positions: int32(a.Positions), Heads: int32(a.Heads), Width: int32(a.Width), Scale: a.Scale()}
	if a.Causal {
		h.Causal = 1
	}
	return h
}

// Random is the struct Random of the kernels: an nn.Stream on the device.
type Random struct {
	Seed, Step    uint64
	First, Stride int64
}

// NewRandom converts s to the kernels' struct.
func NewRandom(s nn.Stream) Random {
	return Random{Seed: s.Seed, Step: s.Step, First: int64(s.First), Stride: int64(s.Stride)}
}

// Progress is the struct Progress of the kernels: the number of steps done, and the position
// of the next step's first row in the epoch's order.
type Progress struct {
	Step  uint64
	First int64
}

// A Run is one parameter in an arena.
type Run struct {
	At          int64 // first element in the arena
	N           int64 // elements
	Norm, Norms int32 // index of its first norm, and their number
}

// A Block is the part of a Run that one block of threads updates, beginning at element
// Index·nn.BlockSize.
type Block struct{ Run, Index int32 }

// Plan returns the layout of parameters with these offsets and sizes in an arena, for the
// kernels with _arena in their names. Launch these with one item per Block.
func Plan(offsets, sizes []int) ([]Run, []Block) {
	runs := make([]Run, len(sizes))
	var blocks []Block
	for i, n := range sizes {
		runs[i] = Run{At: int64(offsets[i]), N: int64(n), Norm: int32(len(blocks)), Norms: int32(nn.Blocks(n))}
		for k := range nn.Blocks(n) {
			blocks = append(blocks, Block{int32(i), int32(k)})
		}
	}
	return runs, blocks
}

// LeastBits returns ceil(rate·2²⁴). At this dropout rate an element stays if its 24 random
// bits are at least that.
func LeastBits(rate float32) uint32 {
	return uint32(math.Ceil(float64(rate) * (1 << 24)))
}

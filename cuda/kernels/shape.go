package kernels

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// A Shape is how a kernel divides its items among blocks of threads.
type Shape uint8

// The shapes. What an item is says the name.
const (
	// Elements: any grid is right; an item is one element of the result.
	Elements Shape = iota
	// Rows: a warp has one row after the other; an item is a row.
	Rows
	// Columns: a block of 32 by 32 threads has 32 columns; an item is a column.
	Columns
	// Blocks: a block has nn.BlockSize elements; an item is such a block.
	Blocks
	// Parts: a block has a part of nn.BlockSize elements, of which the grid's second
	// dimension says how many there are: a power of two, as many as keep the device
	// busy; an item is such a number of elements.
	Parts
	// Taps: a block has one element of the gradient, times [Shares] in the
	// grid's second dimension; an item is an element of dw or db.
	Taps
	// One: a single block, whatever the number of items.
	One
)

// threads is how many a block has; for One it is most.
const (
	threads = 256
	most    = 1024
	warp    = 32
	perSM   = 8 // blocks of 256 threads that fill a multiprocessor
)

// A Dim is the size of a grid or a block.
type Dim struct{ X, Y, Z uint32 }

// Of returns the grid and the block for n items on a device with so many
// multiprocessors. A grid is never empty, so a launch for no items is in order,
// but for Blocks and Parts, of which there must be one.
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
	case One:
		size.X = most
	}
	return Dim{uint32(max(1, blocks)), 1, 1}, size
}

// Shares is the number of shares of the rows that conv2d_grad_parts sums apart,
// and so of the partial sums of each element of the gradient.
const Shares = 16

func ceil(n, by int) int { return (n + by - 1) / by }

// A Window is the struct Window of the kernels.
type Window struct {
	Channels, Height, Width int32
	Size, Stride, Padding   int32
	OutHeight, OutWidth     int32
}

// NewWindow returns s as the kernels take it.
func NewWindow(s nn.Window) Window {
	return Window{
		int32(s.Channels), int32(s.Height), int32(s.Width),
		int32(s.Size), int32(s.Stride), int32(s.Padding),
		int32(s.OutHeight()), int32(s.OutWidth()),
	}
}

// Random is the struct Random of the kernels: an nn.Stream on the device.
type Random struct {
	Seed, Step    uint64
	First, Stride int64
}

// NewRandom returns s as the kernels take it.
func NewRandom(s nn.Stream) Random {
	return Random{Seed: s.Seed, Step: s.Step, First: int64(s.First), Stride: int64(s.Stride)}
}

// Progress is the struct Progress of the kernels: steps made, and the first row
// of the next in the order of the rows.
type Progress struct {
	Step  uint64
	First int64
}

// A Run is one parameter in an arena.
type Run struct {
	At          int64 // first element in the arena
	N           int32 // elements
	Norm, Norms int32 // first of its norms among all, and how many
	_           int32
}

// A Block is the part of a Run that one block of threads updates: elements from
// Index·nn.BlockSize on.
type Block struct{ Run, Index int32 }

// Plan lays out the parameters with these offsets and sizes for the kernels with
// _arena in their names: launch as many blocks as it returns.
func Plan(offsets, sizes []int) ([]Run, []Block) {
	runs := make([]Run, len(sizes))
	var blocks []Block
	for i, n := range sizes {
		runs[i] = Run{At: int64(offsets[i]), N: int32(n), Norm: int32(len(blocks)), Norms: int32(nn.Blocks(n))}
		for k := range nn.Blocks(n) {
			blocks = append(blocks, Block{int32(i), int32(k)})
		}
	}
	return runs, blocks
}

// LeastBits returns the smallest 24 random bits with which an element stays at
// this dropout rate: ceil(rate·2²⁴).
func LeastBits(rate float32) uint32 {
	return uint32(math.Ceil(float64(rate) * (1 << 24)))
}

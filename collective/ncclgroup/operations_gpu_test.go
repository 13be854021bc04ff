//go:build gpu && cgo && linux

package ncclgroup

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// An operation is a call and its specification. dst and src return the lengths of the
// vectors for pieces of n elements. want returns the contents of a rank's dst after the
// call, or nil if the rank receives nothing.
type operation struct {
	name     string
	dst, src func(size, rank, n int) int
	call     func(ctx context.Context, g *collective.Group, dst, src collective.Vector, op collective.Op) error
	want     func(t trial, size, rank int) []float64
	reduces  bool
	same     bool                      // dst is src
	inPlace  bool                      // dst may be a piece of src, or src a piece of dst, or both are the same
	costly   bool                      // connects ranks anew
	between  func(size, rank int) bool // reports whether the rank takes part; nil: all do
}

func once(_, _, n int) int     { return n }
func times(size, _, n int) int { return size * n }

// uneven returns piece lengths that differ. One of them is 0.
func uneven(size, n int) []int {
	counts := make([]int, size)
	for r := range counts {
		counts[r] = r * n
	}
	return counts
}

func piece(_, rank, n int) int { return rank * n }

func total(size, _, n int) int { return size * (size - 1) / 2 * n }

// turned returns the counts of an AllToAllV. Rank r exchanges (r+q)%size pieces with
// rank q, in each direction.
func turned(size, rank, n int) []int {
	counts := make([]int, size)
	for r := range counts {
		counts[r] = (rank + r) % size * n
	}
	return counts
}

// amongFirst returns the elements that all ranks except the last exchange. The last has
// none.
func amongFirst(size, rank, n int) int {
	if rank == size-1 {
		return 0
	}
	return (size - 1) * n
}

var operations = []operation{
	{name: "AllReduce", dst: once, src: once, reduces: true, same: true,
		call: func(ctx context.Context, g *collective.Group, v, _ collective.Vector, op collective.Op) error {
			return g.AllReduce(ctx, v, op)
		},
		want: func(t trial, size, _ int) []float64 { return t.reduced(size, everyone(size)...) }},
	{name: "AllReduceAsync", dst: once, src: once, reduces: true, same: true, call: inParts,
		want: func(t trial, size, _ int) []float64 { return t.reduced(size, everyone(size)...) }},
	{name: "Reduce", dst: once, src: once, reduces: true, inPlace: true,
		call: func(ctx context.Context, g *collective.Group, dst, src collective.Vector, op collective.Op) error {
			return g.Reduce(ctx, dst, src, op, g.Size()/2)
		},
		want: func(t trial, size, rank int) []float64 {
			if rank != size/2 {
				return nil
			}
			return t.reduced(size, everyone(size)...)
		}},
	{name: "ReduceScatter", dst: once, src: times, reduces: true, inPlace: true,
		call: func(ctx context.Context, g *collective.Group, dst, src collective.Vector, op collective.Op) error {
			return g.ReduceScatter(ctx, dst, src, op)
		},
		want: func(t trial, size, rank int) []float64 {
			return t.reduced(size, everyone(size)...)[rank*t.n : (rank+1)*t.n]
		}},
	{name: "ReduceScatterV", dst: piece, src: total, reduces: true,
		call: func(ctx context.Context, g *collective.Group, dst, src collective.Vector, op collective.Op) error {
			return g.ReduceScatterV(ctx, dst, src, uneven(g.Size(), unit(g, src.Len())), op)
		},
		want: func(t trial, size, rank int) []float64 {
			lo := total(rank, 0, t.n)
			return t.reduced(size, everyone(size)...)[lo : lo+rank*t.n]
		}},
	{name: "Broadcast", dst: once, src: once, same: true,
		call: func(ctx context.Context, g *collective.Group, v, _ collective.Vector, _ collective.Op) error {
			return g.Broadcast(ctx, v, g.Size()-1)
		},
		want: func(t trial, size, _ int) []float64 { return t.operand(size, size-1) }},
	{name: "AllGather", dst: times, src: once, inPlace: true,
		call: func(ctx context.Context, g *collective.Group, dst, src collective.Vector, _ collective.Op) error {
			return g.AllGather(ctx, dst, src)
		},
		want: gathered},
	{name: "AllGatherV", dst: total, src: piece,
		call: func(ctx context.Context, g *collective.Group, dst, src collective.Vector, _ collective.Op) error {
			return g.AllGatherV(ctx, dst, src, uneven(g.Size(), unit(g, dst.Len())))
		},
		want: gathered},
	{name: "Gather", dst: times, src: once,
		call: func(ctx context.Context, g *collective.Group, dst, src collective.Vector, _ collective.Op) error {
			return g.Gather(ctx, dst, src, g.Size()-1)
		},
		want: func(t trial, size, rank int) []float64 {
			if rank != size-1 {
				return nil
			}
			return gathered(t, size, rank)
		}},
	{name: "Scatter", dst: once, src: times,
		call: func(ctx context.Context, g *collective.Group, dst, src collective.Vector, _ collective.Op) error {
			return g.Scatter(ctx, dst, src, g.Size()-1)
		},
		want: func(t trial, size, rank int) []float64 {
			return t.operand(size, size-1)[rank*t.n : (rank+1)*t.n]
		}},
	{name: "AllToAll", dst: times, src: times,
		call: func(ctx context.Context, g *collective.Group, dst, src collective.Vector, _ collective.Op) error {
			return g.AllToAll(ctx, dst, src)
		},
		want: func(t trial, size, rank int) (out []float64) {
			for r := range size {
				out = append(out, t.operand(size, r)[rank*t.n:(rank+1)*t.n]...)
			}
			return out
		}},
	{name: "AllToAllV", dst: total, src: total,
		call: func(ctx context.Context, g *collective.Group, dst, src collective.Vector, _ collective.Op) error {
			counts := turned(g.Size(), g.Rank(), unit(g, src.Len()))
			return g.AllToAllV(ctx, dst, src, counts, counts)
		},
		want: func(t trial, size, rank int) []float64 {
			out := []float64{}
			for r := range size {
				lo := 0
				for _, n := range turned(size, r, t.n)[:rank] {
					lo += n
				}
				out = append(out, t.operand(size, r)[lo:lo+turned(size, r, t.n)[rank]]...)
			}
			return out
		}},
	{name: "AllToAllV without the last rank", dst: amongFirst, src: amongFirst,
		call: func(ctx context.Context, g *collective.Group, dst, src collective.Vector, _ collective.Op) error {
			counts := make([]int, g.Size())
			for r := range g.Size() - 1 {
				counts[r] = src.Len() / (g.Size() - 1)
			}
			return g.AllToAllV(ctx, dst, src, counts, counts)
		},
		want: func(t trial, size, rank int) []float64 {
			out := []float64{}
			for r := 0; r < size-1 && rank < size-1; r++ {
				out = append(out, t.operand(size, r)[rank*t.n:(rank+1)*t.n]...)
			}
			return out
		}},
	{name: "SendRecv", dst: once, src: once,
		call: func(ctx context.Context, g *collective.Group, dst, src collective.Vector, _ collective.Op) error {
			return g.SendRecv(ctx, dst, (g.Rank()+g.Size()-1)%g.Size(), src, (g.Rank()+1)%g.Size())
		},
		want: func(t trial, size, rank int) []float64 { return t.operand(size, (rank+size-1)%size) }},
	{name: "Send and Recv", dst: once, src: once, call: fromFirstToLast,
		between: func(size, rank int) bool { return size > 1 && (rank == 0 || rank == size-1) },
		want: func(t trial, size, rank int) []float64 {
			if size == 1 || rank != size-1 {
				return nil
			}
			return t.operand(size, 0)
		}},
	{name: "AllReduce of a Sub", dst: once, src: once, reduces: true, same: true, costly: true, call: inHalves,
		want: func(t trial, size, rank int) []float64 {
			var mates []int
			for r := rank % 2; r < size; r += 2 {
				mates = append(mates, r)
			}
			return t.reduced(size, mates...)
		}},
}

// unit returns the length of rank 1's piece, given the total of uneven.
func unit(g *collective.Group, all int) int {
	return all / max(1, g.Size()*(g.Size()-1)/2)
}

func gathered(t trial, size, _ int) []float64 {
	out := []float64{}
	for r := range size {
		out = append(out, t.operand(size, r)...)
	}
	return out
}

// inParts starts several calls before it waits for the first.
func inParts(ctx context.Context, g *collective.Group, v, _ collective.Vector, op collective.Op) error {
	const parts = 3
	var all []*collective.Work
	for i := range parts {
		all = append(all, g.AllReduceAsync(ctx, v.Slice(i*v.Len()/parts, (i+1)*v.Len()/parts), op))
	}
	var errs []error
	for _, w := range all {
		errs = append(errs, w.Wait(ctx))
	}
	return errors.Join(errs...)
}

// fromFirstToLast sends a message between two ranks. The others take no part.
func fromFirstToLast(ctx context.Context, g *collective.Group, dst, src collective.Vector, _ collective.Op) error {
	last := g.Size() - 1
	switch {
	case last == 0:
		return nil
	case g.Rank() == 0:
		return g.Send(ctx, src, last)
	case g.Rank() == last:
		return g.Recv(ctx, dst, 0)
	}
	return nil
}

// inHalves reduces among the even ranks and among the odd ranks, each numbered in
// reverse.
func inHalves(ctx context.Context, g *collective.Group, v, _ collective.Vector, op collective.Op) error {
	sub, err := g.Sub(ctx, g.Rank()%2, -g.Rank())
	if err != nil {
		return err
	}
	return errors.Join(sub.AllReduce(ctx, v, op), sub.Close())
}

// NCCL preserves every 16-bit number, and rounds the sum of two once, as the host does.
func TestSixteenBits(t *testing.T) {
	for _, kind := range []collective.DType{collective.Float16, collective.BFloat16} {
		operand := func(rank int) []uint16 {
			s := make([]uint16, 1<<16)
			for i := range s {
				s[i] = uint16(i + rank*(i%61)*31)
			}
			return s
		}
		want, sum := make([]float32, 1<<16), make([]float32, 1<<16)
		for rank := range 2 {
			require.NoError(t, collective.Widen16(want, operand(rank), kind))
			for i, x := range want {
				sum[i] += x
			}
		}
		bits := make([]uint16, len(sum))
		require.NoError(t, collective.Round16(bits, sum, kind))
		require.NoError(t, collective.Widen16(want, bits, kind))
		all := ranks(t, 2, Must, anyOrder)
		run(t, all, func(ctx context.Context, r *rank) {
			v, err := putHost(r.workplace, collective.Of16(operand(r.Rank()), kind))
			assert.NoError(t, err)
			assert.NoError(t, r.AllReduce(ctx, v, collective.Sum))
			have, bits := make([]float32, v.Len()), make([]uint16, v.Len())
			assert.NoError(t, getHost(r.workplace, collective.Of16(bits, kind), v))
			assert.NoError(t, collective.Widen16(have, bits, kind))
			for i, x := range have {
				if x != want[i] && (x == x || want[i] == want[i]) {
					assert.Fail(t, "wrong sum", "%v: element %d is %v, on the host %v", kind, i, x, want[i])
					return
				}
			}
		})
	}
}

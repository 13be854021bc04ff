package collectivetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ringtrain/ringtrain/collective"
)

// uneven returns counts of at most n elements that differ between ranks; some are 0.
func uneven(size, n int) []int {
	counts := make([]int, size)
	for r := range counts {
		counts[r] = n * (r % 3) / 2
	}
	return counts
}

func before(counts []int, rank int) int {
	n := 0
	for _, c := range counts[:rank] {
		n += c
	}
	return n
}

// testReduceScatter compares every rank's piece with that piece of an AllReduce.
func testReduceScatter(t *testing.T, groups []*collective.Group) {
	size := len(groups)
	for _, n := range light(size, 0, 1, 5000, 70_000) {
		for _, offset := range []int{0, 1000} {
			want := Reduced[float32](size, n*size, offset, collective.Mean)
			Run(t, groups, func(ctx context.Context, g *collective.Group) {
				src, dst := Operands[float32](g.Rank(), n*size), make([]float32, n)
				assert.NoError(t, g.ReduceScatter(ctx, collective.Of(dst), collective.Of(src).At(offset), collective.Mean))
				checkSame(t, g, want[g.Rank()*n:(g.Rank()+1)*n], dst, fmt.Sprint(n, " at ", offset))
				checkSame(t, g, Operands[float32](g.Rank(), n*size), src, "src is left alone")

				piece := collective.Of(src).At(offset).Slice(g.Rank()*n, (g.Rank()+1)*n)
				assert.NoError(t, g.ReduceScatter(ctx, piece, collective.Of(src).At(offset), collective.Mean))
				checkSame(t, g, want[g.Rank()*n:(g.Rank()+1)*n], src[g.Rank()*n:(g.Rank()+1)*n], "in place")
			})
		}
		counts := uneven(size, n)
		all := Reduced[int64](size, before(counts, size), 0, collective.Max)
		Run(t, groups, func(ctx context.Context, g *collective.Group) {
			lo := before(counts, g.Rank())
			dst := make([]int64, counts[g.Rank()])
			assert.NoError(t, g.ReduceScatterV(ctx, collective.Of(dst), collective.Of(Operands[int64](g.Rank(), len(all))), counts, collective.Max))
			checkSame(t, g, all[lo:lo+len(dst)], dst, fmt.Sprint("V ", counts))
		})
	}
}

func testReduce(t *testing.T, groups []*collective.Group) {
	size := len(groups)
	for _, n := range light(size, 0, 3, 100_000) {
		for _, root := range []int{0, size - 1} {
			want := Reduced[float64](size, n, 0, collective.Sum)
			Run(t, groups, func(ctx context.Context, g *collective.Group) {
				src, dst := Operands[float64](g.Rank(), n), make([]float64, n)
				assert.NoError(t, g.Reduce(ctx, collective.Of(dst), collective.Of(src), collective.Sum, root))
				if g.Rank() == root {
					checkSame(t, g, want, dst, fmt.Sprint(n))
				}
				checkSame(t, g, Operands[float64](g.Rank(), n), src, "src is left alone")
			})
		}
	}
}

// testPieces is AllGatherV.
func testPieces(t *testing.T, groups []*collective.Group) {
	for _, n := range light(len(groups), 0, 2, 70_000) {
		counts := uneven(len(groups), n)
		var want []float32
		for r, c := range counts {
			want = append(want, Operands[float32](r, c)...)
		}
		Run(t, groups, func(ctx context.Context, g *collective.Group) {
			dst := make([]float32, len(want))
			assert.NoError(t, g.AllGatherV(ctx, collective.Of(dst), collective.Of(Operands[float32](g.Rank(), counts[g.Rank()])), counts))
			checkSame(t, g, want, dst, fmt.Sprint(counts))
			assert.Error(t, g.AllGatherV(ctx, collective.Of(dst), collective.Of(dst), append(counts, 1)))
		})
	}
}

func testGather(t *testing.T, groups []*collective.Group) {
	size := len(groups)
	for _, n := range light(size, 0, 1, 70_000) {
		var all []int32
		for r := range groups {
			all = append(all, Operands[int32](r, n)...)
		}
		for _, root := range []int{0, size / 2} {
			Run(t, groups, func(ctx context.Context, g *collective.Group) {
				mine, whole := Operands[int32](g.Rank(), n), collective.Of([]int32{})
				gathered := make([]int32, len(all))
				if g.Rank() == root {
					whole = collective.Of(gathered)
				}
				assert.NoError(t, g.Gather(ctx, whole, collective.Of(mine), root))
				if g.Rank() == root {
					checkSame(t, g, all, gathered, "gathered")
				}
				back := make([]int32, n)
				assert.NoError(t, g.Scatter(ctx, collective.Of(back), whole, root))
				checkSame(t, g, mine, back, "scattered")
			})
		}
	}
}

func testAllToAll(t *testing.T, groups []*collective.Group) {
	size := len(groups)
	for _, n := range light(size, 0, 1, 70_000) {
		Run(t, groups, func(ctx context.Context, g *collective.Group) {
			dst := make([]float32, n*size)
			assert.NoError(t, g.AllToAll(ctx, collective.Of(dst), collective.Of(Operands[float32](g.Rank(), n*size))))
			for r := range size {
				checkSame(t, g, Operands[float32](r, n*size)[g.Rank()*n:(g.Rank()+1)*n], dst[r*n:(r+1)*n], fmt.Sprint("from ", r))
			}
		})
		// Rank a sends rank b (a+2b)%3 * n elements.
		count := func(a, b int) int { return (a + 2*b) % 3 * n }
		Run(t, groups, func(ctx context.Context, g *collective.Group) {
			sends, recvs := make([]int, size), make([]int, size)
			for r := range size {
				sends[r], recvs[r] = count(g.Rank(), r), count(r, g.Rank())
			}
			src := Operands[int64](g.Rank(), before(sends, size))
			dst := make([]int64, before(recvs, size))
			assert.NoError(t, g.AllToAllV(ctx, collective.Of(dst), collective.Of(src), sends, recvs))
			again := make([]int64, len(dst))
			w, err := collective.NewAllToAllW(g, collective.Int64, cut(again, recvs, 3), cut(src, sends, 2))
			if !assert.NoError(t, err) {
				return
			}
			assert.NoError(t, w.Call(ctx))
			checkSame(t, g, dst, again, "W")
			clear(again)
			work := w.Start(ctx)
			nothing, err := collective.NewAllToAllW(g, collective.Uint8, make([][]collective.Vector, size), make([][]collective.Vector, size))
			assert.NoError(t, err)
			assert.NoError(t, nothing.Call(ctx))
			assert.NoError(t, work.Wait(ctx))
			checkSame(t, g, dst, again, "W in the background")
			for r := range size {
				lo := 0 // offset in r's operands of what it sends here
				total := 0
				for b := range size {
					if b < g.Rank() {
						lo += count(r, b)
					}
					total += count(r, b)
				}
				theirs := Operands[int64](r, total)[lo : lo+recvs[r]]
				checkSame(t, g, theirs, dst[before(recvs, r):][:recvs[r]], fmt.Sprint("V from ", r))
			}
		})
	}
}

// testBlocks exchanges blocks of matrices whose rows have a cache line each: messages in
// very many vectors, between two ranks longer than a transport may buffer.
func testBlocks(t *testing.T, groups []*collective.Group) {
	const width = 16
	size := len(groups)
	rows := 500
	if size == 2 && !raced {
		rows = 20_000 // messages of 1.2 MiB: a ring of shared memory holds up to 1 MiB
	}
	Run(t, groups, func(ctx context.Context, g *collective.Group) {
		src, dst := Operands[float32](g.Rank(), rows*size*width), make([]float32, rows*size*width)
		w, err := collective.NewAllToAllW(g, collective.Float32, blocks(dst, size, width), blocks(src, size, width))
		if !assert.NoError(t, err) || !assert.NoError(t, w.Call(ctx)) {
			return
		}
		want := make([]float32, len(dst))
		for at := range want {
			row, r := at/width/size, at/width%size
			want[at] = operand[float32](r, (row*size+g.Rank())*width+at%width)
		}
		checkSame(t, g, want, dst, "blocks")
	})
}

// blocks returns, for each rank, the rows of its block of a matrix. The blocks lie side by
// side.
func blocks(matrix []float32, size, width int) [][]collective.Vector {
	all := make([][]collective.Vector, size)
	for at := 0; at < len(matrix); at += width {
		r := at / width % size
		all[r] = append(all[r], collective.Of(matrix[at:at+width]))
	}
	return all
}

// cut returns the vectors of an AllToAllW for the pieces of an AllToAllV. Each piece is cut
// into as many vectors.
func cut(s []int64, counts []int, vectors int) [][]collective.Vector {
	all := make([][]collective.Vector, len(counts))
	for r, n := range counts {
		for k := range vectors {
			all[r] = append(all[r], collective.Of(s[k*n/vectors:(k+1)*n/vectors]))
		}
		s = s[n:]
	}
	return all
}

// testSend makes every rank send round the ring, then one pair of ranks, then all
// make a call together.
func testSend(t *testing.T, groups []*collective.Group) {
	size := len(groups)
	Run(t, groups, func(ctx context.Context, g *collective.Group) {
		r := g.Rank()
		v := collective.Of(make([]float32, 1))
		assert.Error(t, g.Send(ctx, v, r), "to itself")
		assert.Error(t, g.Recv(ctx, v, size))
		if size == 1 {
			return
		}
		for _, n := range light(size, 0, 1, 200_000) {
			dst := make([]float32, n)
			up, down := (r+1)%size, (r+size-1)%size
			assert.NoError(t, g.SendRecv(ctx, collective.Of(dst), down, collective.Of(Operands[float32](r, n)), up))
			checkSame(t, g, Operands[float32](down, n), dst, "round the ring")
			switch r {
			case 0:
				assert.NoError(t, g.Send(ctx, collective.Of(Operands[float32](0, n)), 1))
				assert.NoError(t, g.Recv(ctx, collective.Of(dst), 1))
				checkSame(t, g, Operands[float32](1, n), dst, "there and back")
			case 1:
				assert.NoError(t, g.Recv(ctx, collective.Of(dst), 0))
				checkSame(t, g, Operands[float32](0, n), dst, "there")
				assert.NoError(t, g.Send(ctx, collective.Of(Operands[float32](1, n)), 0))
			}
		}
		assert.NoError(t, g.Barrier(ctx))
	})
}

// testSub splits the group by parity, in reverse order, and uses both levels in turn.
func testSub(t *testing.T, groups []*collective.Group) {
	size := len(groups)
	Run(t, groups, func(ctx context.Context, g *collective.Group) {
		sub, err := g.Sub(ctx, g.Rank()%2, -g.Rank())
		if !assert.NoError(t, err) {
			return
		}
		sum := []int64{int64(g.Rank())}
		assert.NoError(t, collective.AllReduce(ctx, sub, sum, collective.Sum))
		want := int64(0)
		members := 0
		for r := g.Rank() % 2; r < size; r += 2 {
			want += int64(r)
			members++
		}
		assert.Equal(t, want, sum[0])
		assert.Equal(t, members, sub.Size())
		assert.Equal(t, g.View().Name(g.Rank()), sub.View().Name(sub.Rank()))
		highest := (size - 1) - (size-1-g.Rank()%2)%2
		assert.Equal(t, g.View().Name(highest), sub.View().Name(0), "the lowest key comes first")
		assert.NoError(t, g.Barrier(ctx))
		assert.NoError(t, sub.Barrier(ctx))
		assert.NoError(t, sub.Close())
		none, err := g.Sub(ctx, -1, 0)
		assert.NoError(t, err)
		assert.Nil(t, none)
		assert.NoError(t, g.Barrier(ctx), "closing a part leaves the whole open")
	})
}

// testAsync makes calls faster than they run. Order and results must be as if each
// had waited for the one before.
func testAsync(t *testing.T, groups []*collective.Group) {
	const n, calls = 5000, 20
	want := Reduced[float32](len(groups), n, 0, collective.Sum)
	Run(t, groups, func(ctx context.Context, g *collective.Group) {
		var works []*collective.Work
		var vectors [][]float32
		for range calls {
			v := Operands[float32](g.Rank(), n)
			vectors = append(vectors, v)
			works = append(works, g.AllReduceAsync(ctx, collective.Of(v), collective.Sum))
		}
		assert.NoError(t, g.Barrier(ctx), "a synchronous call comes after them")
		for i, w := range works {
			select {
			case <-w.Done():
			default:
				assert.Fail(t, "not done after the barrier")
			}
			assert.NoError(t, w.Wait(ctx))
			checkSame(t, g, want, vectors[i], "asynchronous")
		}
		w := g.BroadcastAsync(ctx, collective.Of(vectors[0]), g.Size())
		assert.ErrorContains(t, w.Wait(ctx), "choose a root from", "a mistake of this call alone")
		src, dst := []int64{int64(g.Rank())}, make([]int64, g.Size())
		assert.NoError(t, g.AllGatherAsync(ctx, collective.Of(dst), collective.Of(src)).Wait(ctx))
		for r := range dst {
			assert.EqualValues(t, r, dst[r])
		}
	})
}

// testReduceScatterAsync makes asynchronous calls of two kinds without waiting. Each
// must see the results of those before it, and a mistake must affect only its own
// call.
func testReduceScatterAsync(t *testing.T, groups []*collective.Group) {
	const n, calls = 3000, 5
	size := len(groups)
	want := Reduced[float32](size, n*size, 0, collective.Sum)
	Run(t, groups, func(ctx context.Context, g *collective.Group) {
		src := Operands[float32](g.Rank(), n*size)
		var works []*collective.Work
		var pieces, wholes [][]float32
		for range calls {
			piece, whole := make([]float32, n), make([]float32, n*size)
			pieces, wholes = append(pieces, piece), append(wholes, whole)
			works = append(works, g.ReduceScatterAsync(ctx, collective.Of(piece), collective.Of(src), collective.Sum),
				g.AllGatherAsync(ctx, collective.Of(whole), collective.Of(piece)))
		}
		mistake := g.ReduceScatterAsync(ctx, collective.Of(make([]float32, n+1)), collective.Of(src), collective.Sum)
		for _, w := range works {
			assert.NoError(t, w.Wait(ctx))
		}
		assert.ErrorContains(t, mistake.Wait(ctx), "do not match")
		for i := range calls {
			checkSame(t, g, want[g.Rank()*n:(g.Rank()+1)*n], pieces[i], "piece")
			checkSame(t, g, want, wholes[i], "whole")
		}
		checkSame(t, g, Operands[float32](g.Rank(), n*size), src, "src is left alone")
		assert.NoError(t, g.Barrier(ctx))
	})
}

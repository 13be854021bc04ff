package bench

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/fold"
)

// A fault damages the result of a call on one rank.
type fault struct {
	name   string
	damage func(b []byte, width int)
	wrong  int64 // elements; 0: at least one
}

// faults has what a collective operation can get wrong without failing.
func faults() []fault {
	element := func(b []byte, width, i int) []byte { return b[i*width : (i+1)*width] }
	return []fault{
		{"lowest bit of the first element", func(b []byte, _ int) { b[0] ^= 1 }, 1},
		{"highest bit of the last element", func(b []byte, _ int) { b[len(b)-1] ^= 0x80 }, 1},
		{"one bit in each of two elements", func(b []byte, width int) { element(b, width, 1)[0] ^= 2; element(b, width, 5)[width-1] ^= 4 }, 2},
		{"all bits of an element set, in floats a NaN", func(b []byte, width int) {
			for i := range element(b, width, 3) {
				b[3*width+i] = 0xff
			}
		}, 1},
		{"an element that is missing", func(b []byte, width int) { clear(element(b, width, 7)) }, 1},
		{"all elements one place on", func(b []byte, width int) { copy(b[width:], b[:len(b)-width]) }, 0},
		{"two different elements exchanged", func(b []byte, width int) {
			for i := 1; ; i++ {
				x, y := element(b, width, 0), element(b, width, i)
				if string(x) != string(y) {
					kept := string(x)
					copy(x, y)
					copy(y, kept)
					return
				}
			}
		}, 2},
		{"nothing arrived", func(b []byte, _ int) { clear(b) }, 0},
	}
}

// faulty returns an operation that makes the right call and then damages its result on
// one rank, in the first iteration.
func faulty(op *operation, rank int, damage func(b []byte, width int)) *operation {
	wrong, done := *op, false
	wrong.call = func(ctx context.Context, g *collective.Group, s *Spec, v *operands) error {
		err := op.call(ctx, g, s, v)
		if g.Rank() == rank && !done {
			done = true // only this rank's goroutine comes here
			damage(host(v.dst), v.dst.DType().Size())
		}
		return err
	}
	return &wrong
}

// wrongElements returns the wrong elements that a trial of an operation counts, the
// same on every rank.
func wrongElements(t *testing.T, groups []*collective.Group, s Spec, op *operation, inside bool) int64 {
	t.Helper()
	counts := make([]int64, len(groups))
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		b := &buffers{group: g, spec: &s, op: op, count: 40}
		if !assert.NoError(t, b.allocate(3, places{})) {
			return
		}
		trial := b.outside()
		if inside {
			trial = b.inside()
		}
		timing, err := trial.measure(ctx)
		if assert.NoError(t, err) {
			counts[g.Rank()] = timing.Wrong
		}
	})
	for _, n := range counts {
		require.Equal(t, counts[0], n, "every rank knows of the wrong elements of all")
	}
	return counts[0]
}

// Every fault is counted: in each operation, type and placement, and exactly once
// although there are two iterations and three ranks.
func TestOracleCatchesEveryFault(t *testing.T) {
	groups := collectivetest.Local(t, 3)
	for name, op := range operations {
		for dtype := collective.Float32; dtype <= collective.Uint8; dtype++ {
			for _, inside := range []bool{false, true} {
				if inside && op.inside == nil {
					continue
				}
				s := Spec{Op: name, DType: dtype, Reduction: collective.Sum, Root: 2, Iterations: 2, Check: true}
				require.Zero(t, wrongElements(t, groups, s, op, inside), "%s of %v, in place %t: nothing is wrong", name, dtype, inside)
				for _, f := range faults() {
					got := wrongElements(t, groups, s, faulty(op, 2, f.damage), inside)
					if f.wrong > 0 {
						require.Equal(t, f.wrong, got, "%s of %v, in place %t: %s", name, dtype, inside, f.name)
					} else {
						require.Positive(t, got, "%s of %v, in place %t: %s", name, dtype, inside, f.name)
					}
				}
			}
		}
	}
}

// A rank that makes no call, and so keeps its own input or cleared memory, is caught in
// each operation and placement.
func TestOracleCatchesACallThatDoesNothing(t *testing.T) {
	groups := collectivetest.Local(t, 3)
	for name, op := range operations {
		idle := *op
		idle.call = func(context.Context, *collective.Group, *Spec, *operands) error {
			return nil
		}
		for _, inside := range []bool{false, true} {
			if inside && op.inside == nil {
				continue
			}
			for reduction := collective.Sum; reduction <= collective.Prod; reduction++ {
				s := Spec{Op: name, DType: collective.Float32, Reduction: reduction, Root: 1, Iterations: 1, Check: true}
				require.Positive(t, wrongElements(t, groups, s, &idle, inside), "%s %v, in place %t", name, reduction, inside)
			}
		}
	}
}

// The memory of results is cleared between iterations, so a call that writes no result
// cannot pass with the previous one.
func TestOracleCatchesAnOldResult(t *testing.T) {
	groups := collectivetest.Local(t, 3)
	for name, op := range operations {
		once := *op
		var calls [3]int // by rank
		once.call = func(ctx context.Context, g *collective.Group, s *Spec, v *operands) error {
			if calls[g.Rank()]++; calls[g.Rank()] > 1 {
				return nil
			}
			return op.call(ctx, g, s, v)
		}
		s := Spec{Op: name, DType: collective.Int32, Reduction: collective.Sum, Iterations: 2, Check: true}
		results := 3
		if op.onlyRoot {
			results = 1
		}
		require.EqualValues(t, results*40*op.out(3), wrongElements(t, groups, s, &once, false), "%s: all elements of the second iteration", name)
	}
}

// Data of a wrong rank is caught in every part of the result.
func TestOracleCatchesPartsOfAWrongRank(t *testing.T) {
	groups := collectivetest.Local(t, 3)
	for _, name := range []string{"allgather", "alltoall", "gather"} {
		for part := range 3 {
			s := Spec{Op: name, DType: collective.Int32, Iterations: 1, Check: true}
			swapped := faulty(operations[name], 0, func(b []byte, _ int) {
				size := len(b) / 3
				copy(b[part*size:(part+1)*size], b[(part+1)%3*size:])
			})
			require.Positive(t, wrongElements(t, groups, s, swapped, false), "%s: part %d has the data of the next rank", name, part)
		}
	}
	neighbour := *operations["sendrecv"]
	neighbour.call = func(ctx context.Context, g *collective.Group, _ *Spec, v *operands) error {
		up, down := (g.Rank()+1)%g.Size(), (g.Rank()+g.Size()-1)%g.Size()
		return g.SendRecv(ctx, v.dst, up, v.src, down)
	}
	s := Spec{Op: "sendrecv", DType: collective.Int32, Iterations: 1, Check: true}
	require.Positive(t, wrongElements(t, groups, s, &neighbour, false), "round the ring the other way")
	other := *operations["broadcast"]
	other.call = func(ctx context.Context, g *collective.Group, s *Spec, v *operands) error {
		if g.Rank() == 0 {
			copy(host(v.dst), host(v.src))
		}
		return g.Broadcast(ctx, v.dst, 0)
	}
	s = Spec{Op: "broadcast", DType: collective.Int32, Root: 1, Iterations: 1, Check: true}
	require.Positive(t, wrongElements(t, groups, s, &other, false), "from a rank that is not the root")
}

// A wrong reduction, or one that leaves out a rank or counts one twice, is caught.
func TestOracleCatchesWrongReductions(t *testing.T) {
	groups := collectivetest.Local(t, 3)
	for asked := collective.Sum; asked <= collective.Prod; asked++ {
		for done := collective.Sum; done <= collective.Prod; done++ {
			op := *operations["allreduce"]
			op.call = func(ctx context.Context, g *collective.Group, s *Spec, v *operands) error {
				if err := s.fill(v); err != nil {
					return err
				}
				return g.AllReduce(ctx, v.dst, done)
			}
			s := Spec{Op: "allreduce", DType: collective.Float64, Reduction: asked, Iterations: 1, Check: true}
			require.Equal(t, asked != done, wrongElements(t, groups, s, &op, true) > 0, "asked for %v, got %v", asked, done)
		}
	}
	for name, missing := range map[string]byte{"left out": 0, "counted twice": 2} {
		op := *operations["allreduce"]
		op.call = func(ctx context.Context, g *collective.Group, s *Spec, v *operands) error {
			copy(host(v.dst), host(v.src))
			if g.Rank() == 1 {
				for i, b := range host(v.dst) {
					host(v.dst)[i] = missing * b
				}
			}
			return g.AllReduce(ctx, v.dst, collective.Sum)
		}
		s := Spec{Op: "allreduce", DType: collective.Uint8, Reduction: collective.Sum, Iterations: 1, Check: true}
		require.EqualValues(t, 3*40, wrongElements(t, groups, s, &op, false), "rank 1 is %s: all elements of all ranks are wrong", name)
	}
}

// What an operation must give is computed here from its definition and the inputs of
// all ranks, element by element.
func TestOracleAgreesWithDefinitions(t *testing.T) {
	const count, seed = 5, 2
	for _, ranks := range []int{1, 2, 3, 8} {
		for name, op := range operations {
			o := &oracle{seed: seed, ranks: ranks, root: ranks - 1, count: count, dtype: collective.Int64, reduction: collective.Sum}
			in := make([][]int64, ranks)
			for r := range in {
				for j := range count * op.in(ranks) {
					in[r] = append(in[r], o.input(r, j))
				}
			}
			sum := func(j int) (s int64) {
				for r := range in {
					s += in[r][j]
				}
				return s
			}
			for rank := range ranks {
				for part := range op.out(ranks) {
					for j := range count {
						want := map[string]func() int64{
							"allreduce":     func() int64 { return sum(j) },
							"reducescatter": func() int64 { return sum(rank*count + j) },
							"allgather":     func() int64 { return in[part][j] },
							"broadcast":     func() int64 { return in[ranks-1][j] },
							"alltoall":      func() int64 { return in[part][rank*count+j] },
							"sendrecv":      func() int64 { return in[(rank+ranks-1)%ranks][j] },
							"reduce":        func() int64 { return sum(j) },
							"gather":        func() int64 { return in[part][j] },
							"scatter":       func() int64 { return in[ranks-1][rank*count+j] },
						}[name]()
						require.Equal(t, want, op.want(o, rank, part, j), "%s: rank %d of %d, part %d, element %d", name, rank, ranks, part, j)
					}
				}
			}
		}
	}
}

// Inputs are never 0, which cleared memory has, and their reductions are whole numbers
// that the type holds exactly, in whatever order they are added.
func TestInputsAreExact(t *testing.T) {
	holds := map[collective.DType]float64{collective.Float16: 1 << 11, collective.BFloat16: 1 << 8, collective.Float32: 1 << 24, collective.Float64: 1 << 53}
	for dtype, most := range holds {
		for reduction := collective.Sum; reduction <= collective.Prod; reduction++ {
			for _, ranks := range []int{1, 2, 9, 31, 32, 33, 64, 256} {
				o := &oracle{seed: 1, ranks: ranks, dtype: dtype, reduction: reduction}
				for j := range 200 {
					total := 0.
					for r := range ranks {
						x := o.input(r, j)
						require.NotZero(t, x)
						total += math.Abs(float64(x))
					}
					if reduction == collective.Prod {
						total = math.Abs(float64(o.reduced(j)))
						require.Equal(t, math.Exp2(math.Round(math.Log2(total))), total, "a power of 2")
					}
					require.LessOrEqual(t, total, most, "%v %v of %d ranks", reduction, dtype, ranks)
				}
			}
		}
	}
}

// The pieces of an input differ from each other, from rank to rank and from size to
// size, so that data in a wrong place are wrong data.
func TestInputsDiffer(t *testing.T) {
	piece := func(seed uint64, rank, at int) string {
		o := &oracle{seed: seed, ranks: 4, dtype: collective.Float32, reduction: collective.Sum}
		var text []byte
		for j := range 32 {
			text = append(text, byte(o.input(rank, at+j)))
		}
		return string(text)
	}
	seen := map[string]string{}
	for seed := range uint64(4) {
		for rank := range 4 {
			for _, at := range []int{0, 32, 512, 1024, 4096, 8192, 1 << 20} {
				where := fmt.Sprintf("size %d, rank %d, element %d", seed, rank, at)
				p := piece(seed, rank, at)
				require.Empty(t, seen[p], "%s equals another piece", where)
				seen[p] = where
			}
		}
	}
}

// A mean is the sum times the rounded inverse for floats, and the quotient for
// integers.
func TestConvertMean(t *testing.T) {
	mean := &oracle{ranks: 3, reduction: collective.Mean}
	require.Equal(t, float32(7)*(float32(1)/3), convert[float32](mean, 7))
	require.Equal(t, float64(7)*(float64(1)/3), convert[float64](mean, 7))
	require.EqualValues(t, 2, convert[int32](mean, 8))
	require.EqualValues(t, -2, convert[int64](mean, -8), "towards zero")
	require.EqualValues(t, 2, convert[uint8](mean, 8))
	sum := &oracle{ranks: 3, reduction: collective.Sum}
	require.EqualValues(t, 7, convert[float32](sum, 7))
	require.EqualValues(t, 44, convert[uint8](sum, 300), "integers wrap")
}

// fill writes every type, repeats after a period, and rounds halves once.
func TestFill(t *testing.T) {
	const n = 2*period + 100
	value := func(j int) int64 { return int64(j%period)%200 + 1 }
	for dtype := collective.Float32; dtype <= collective.Uint8; dtype++ {
		v, err := allocate(dtype, n)
		require.NoError(t, err)
		require.Equal(t, dtype, v.DType())
		require.Equal(t, n, v.Len())
		fill(v, nil, value)
		for _, j := range []int{0, 1, 199, 200, period - 1, period, 2*period - 1, 2 * period, n - 1} {
			require.EqualValues(t, value(j), read(v, j), "%v, element %d", dtype, j)
		}
	}
	_, err := allocate(collective.DType(99), 1)
	require.ErrorIs(t, err, collective.ErrUnsupported)
}

// read returns an element of a vector on the host.
func read(v collective.Vector, j int) float64 {
	switch v.DType() {
	case collective.Float32:
		return float64(elements[float32](v)[j])
	case collective.Float64:
		return elements[float64](v)[j]
	case collective.Int32:
		return float64(elements[int32](v)[j])
	case collective.Int64:
		return float64(elements[int64](v)[j])
	case collective.Uint8:
		return float64(elements[uint8](v)[j])
	}
	format := fold.Half
	if v.DType() == collective.BFloat16 {
		format = fold.Brain
	}
	wide := make([]float32, 1)
	fold.Widen(wide, elements[uint16](v)[j:j+1], format)
	return float64(wide[0])
}

// countWrong compares bits: equal NaNs are equal, and -0 is not 0.
func TestCountWrongComparesBits(t *testing.T) {
	nan := math.NaN()
	count := func(got ...float64) int64 {
		return countWrong(host(collective.Of(got)), host(collective.Of([]float64{1, nan, 0})), 8)
	}
	require.Zero(t, count(1, nan, 0))
	require.EqualValues(t, 1, count(1, nan, math.Copysign(0, -1)))
	require.EqualValues(t, 2, count(nan, 1, 0))
	require.EqualValues(t, 3, count(2, 2, 2))
	require.Zero(t, countWrong(nil, nil, 8))
	for bit := range 32 {
		require.EqualValues(t, 1, countWrong(make([]uint8, 4), single(bit), 1), "bit %d", bit)
	}
}

func single(bit int) []uint8 {
	b := make([]uint8, 4)
	b[bit/8] = 1 << (bit % 8)
	return b
}

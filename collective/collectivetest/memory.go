package collectivetest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// An Allocator allocates memory for a rank, aligned for every type of element.
type Allocator func(t testing.TB, rank, bytes int) []byte

// TestMemory is the conformance suite of AllReduce for transports that care where
// vectors lie. It tests every type and operation, in vectors of odd lengths that
// start anywhere in the allocated memory and anywhere in their arena. The long
// vectors have at least least bytes.
func TestMemory(t *testing.T, make Maker, allocate Allocator, least int) {
	sizes := []int{2, 3, 5}
	if raced {
		sizes = []int{3}
	}
	for _, size := range sizes {
		t.Run(fmt.Sprintf("size %d", size), func(t *testing.T) {
			m := &memory{groups: make(t, size), guard: 3}
			longest := least + 8*(10_001+2*m.guard)
			for r := range size {
				m.of = append(m.of, allocate(t, r, longest))
			}
			for _, op := range []collective.Op{collective.Sum, collective.Mean, collective.Min, collective.Max, collective.Prod} {
				for _, bytes := range []int{0, least} {
					long := bytes > 1<<20
					if long && (size == 5 || size == 3 && op != collective.Sum || op != collective.Sum && op != collective.Mean && op != collective.Max) {
						continue // slow, and covered by other sizes and operations
					}
					checkInMemory[float32](t, m, bytes/4+10_001, op)
					checkInMemory[float64](t, m, bytes/8+10_001, op)
					checkInMemory[int32](t, m, bytes/4+10_001, op)
					checkInMemory[int64](t, m, bytes/8+10_001, op)
					checkInMemory[uint8](t, m, bytes+10_001, op)
					for _, dtype := range []collective.DType{collective.Float16, collective.BFloat16} {
						operands, want := halves(size, bytes/2+10_001, m.at(), dtype, op)
						m.check(t, dtype, op, func(r int) collective.Vector { return collective.Of16(operands[r], dtype) }, collective.Of16(want, dtype))
					}
				}
			}
		})
	}
}

// memory has the vectors of all ranks.
type memory struct {
	groups []*collective.Group
	of     [][]byte // by rank
	guard  int      // guard elements before and after the vector
	calls  int
}

// at returns the offset of the next vector in its arena: in the middle of a block,
// and different in each call.
func (m *memory) at() int { return 4096*m.calls + 1001 }

func checkInMemory[T collective.Element](t *testing.T, m *memory, n int, op collective.Op) {
	want := Reduced[T](len(m.groups), n, m.at(), op)
	m.check(t, collective.TypeOf[T](), op, func(r int) collective.Vector { return collective.Of(Operands[T](r, n)) }, collective.Of(want))
}

// check copies the operands into the memory and reduces them there. The guard elements must not
// change.
func (m *memory) check(t *testing.T, dtype collective.DType, op collective.Op, operand func(rank int) collective.Vector, want collective.Vector) {
	expected, _ := want.Host()
	before := m.guard * dtype.Size()
	Run(t, m.groups, func(ctx context.Context, g *collective.Group) {
		mine, _ := operand(g.Rank()).Host()
		all := m.of[g.Rank()][:before+len(mine)+before]
		for i := range before {
			all[i], all[before+len(mine)+i] = 0xa5, 0x5a
		}
		got := all[before:][:len(mine)]
		copy(got, mine)
		v, err := collective.OfBytes(got, dtype)
		require.NoError(t, err)
		what := fmt.Sprintf("%v of %v on rank %d of %d", op, v, g.Rank(), g.Size())
		assert.NoError(t, g.AllReduce(ctx, v.At(m.at()), op), what)
		assert.True(t, bytes.Equal(expected, got), "wrong result: %s", what)
		for i := range before {
			assert.Equal(t, []byte{0xa5, 0x5a}, []byte{all[i], all[before+len(mine)+i]}, "next to the vector: %s", what)
		}
	})
	m.calls++
}

// valuesOf is the key of a sequence: the values of rounded operands.
type valuesOf format

// halves returns operands of 16-bit floats by rank, and the result of reducing them
// at an offset in their arena, not to be changed.
func halves(size, n, offset int, dtype collective.DType, op collective.Op) (operands [][]uint16, want []uint16) {
	f := half
	if dtype == collective.BFloat16 {
		f = brain
	}
	values := make([][]float32, size)
	operands = make([][]uint16, size)
	for r := range size {
		rounded := first(sequence{f, r}, n, func(i int) uint16 { return f.round(operand[float32](r, i)) })
		values[r] = first(sequence{valuesOf(f), r}, n, func(i int) float32 { return f.value(rounded[i]) })
		operands[r] = slices.Clone(rounded)
	}
	result := reduction(values, offset, op)
	return operands, firstReduced(reduced{f, op, offset}, size, n, func(i int) uint16 { return f.round(result(i)) })
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// A fake is a Device whose memory is the host's, so that any group can work on it. It
// counts its calls, and fails at one of them.
type fake struct {
	calls map[string]int
	fails string // name and number of a call, such as "Copy 2"
	loses bool   // Read gives the result before
}

var errFake = errors.New("the fake device fails")

func (d *fake) called(name string) error {
	if d.calls == nil {
		d.calls = map[string]int{}
	}
	d.calls[name]++
	if d.fails == fmt.Sprint(name, " ", d.calls[name]) {
		return errFake
	}
	return nil
}

func (d *fake) Alloc(t collective.DType, count int) (collective.Vector, error) {
	v, err := allocate(t, count)
	return v, errors.Join(err, d.called("Alloc"))
}

func (d *fake) Write(dst collective.Vector, src []byte) error {
	copy(host(dst), src)
	return d.called("Write")
}

func (d *fake) Read(dst []byte, src collective.Vector) error {
	if !d.loses {
		copy(dst, host(src))
	}
	return d.called("Read")
}

func (d *fake) Copy(dst, src collective.Vector) error {
	copy(host(dst), host(src))
	return d.called("Copy")
}

func (d *fake) Clear(v collective.Vector) error {
	clear(host(v))
	return d.called("Clear")
}

func (d *fake) Wait(context.Context) error { return d.called("Wait") }

// Every operation is right in the memory of a device, too, and results are read from it.
func TestDevice(t *testing.T) {
	for _, name := range Operations() {
		for _, loses := range []bool{false, true} {
			devices := [3]fake{{}, {}, {loses: loses}}
			collectivetest.Run(t, collectivetest.Local(t, 3), func(ctx context.Context, g *collective.Group) {
				s := Spec{Op: name, DType: collective.Int32, Reduction: collective.Sum, Root: 2, Sizes: []int{12, 240, 2400}, Iterations: 2, Check: true, Device: &devices[g.Rank()]}
				rows, err := Run(ctx, g, s)
				if !assert.NoError(t, err, name) {
					return
				}
				assert.Len(t, rows, 3, name)
				for _, r := range rows {
					assert.Equal(t, loses, r.Wrong() > 0, "%s, Read loses results: %t", name, loses)
				}
			})
			calls, iterations := devices[2].calls, 2*3
			if operations[name].inside != nil {
				iterations *= 2
			}
			require.Equal(t, 2, calls["Alloc"], "%s: memory for the largest size, once", name)
			require.Equal(t, 3, calls["Write"], "%s: the input of each size", name)
			require.Equal(t, iterations, calls["Read"], name)
			require.Equal(t, iterations, calls["Clear"], name)
			require.Equal(t, iterations, calls["Wait"], name)
		}
	}
}

// A device that fails ends the run with its error, whichever call fails.
func TestDeviceFails(t *testing.T) {
	for _, call := range []string{"Alloc 1", "Alloc 2", "Write 1", "Clear 1", "Copy 1", "Wait 1", "Read 1", "Read 2", "Write 2", "Clear 3"} {
		g := collectivetest.Local(t, 1)[0]
		s := Spec{Op: "allreduce", DType: collective.Float32, Reduction: collective.Sum, Sizes: []int{4, 8}, Warmup: 1, Iterations: 1, Check: true}
		s.Device = &fake{fails: call}
		rows, err := Run(t.Context(), g, s)
		require.ErrorIs(t, err, errFake, call)
		require.Len(t, rows, map[string]int{"Write 2": 1}[call], "%s: rows that were measured before", call)
	}
}

// Alloc makes the memory of all sizes at once, and its failure is the run's.
func TestAlloc(t *testing.T) {
	for name, count := range map[string]int{"allreduce": 25, "allgather": 24, "alltoall": 24, "reducescatter": 24} {
		collectivetest.Run(t, collectivetest.Local(t, 3), func(ctx context.Context, g *collective.Group) {
			var asked []int
			s := Spec{Op: name, DType: collective.Float32, Reduction: collective.Sum, Sizes: []int{100, 12}, Iterations: 1, Check: true}
			s.Alloc = func(dtype collective.DType, n int) (collective.Vector, error) {
				asked = append(asked, n)
				return allocate(dtype, n)
			}
			rows, err := Run(ctx, g, s)
			assert.NoError(t, err)
			assert.Len(t, rows, 2)
			assert.Equal(t, []int{count, count}, asked, "%s: for the input and for the calls, the larger of input and result, of the largest size", name)
			for _, r := range rows {
				assert.Zero(t, r.Wrong(), name)
			}
		})
	}
	s := Spec{Op: "allreduce", DType: collective.Float32, Reduction: collective.Sum, Sizes: []int{4}}
	s.Alloc = func(collective.DType, int) (collective.Vector, error) { return collective.Vector{}, errFake }
	_, err := Run(t.Context(), collectivetest.Local(t, 1)[0], s)
	require.ErrorIs(t, err, errFake)
}

// Vectors are in the same memory if they start at one address of one side.
func TestSameMemory(t *testing.T) {
	a, b := collective.Of(make([]float32, 4)), collective.Of(make([]float32, 4))
	gpu := func(at uintptr) collective.Vector { return collective.OnDevice(0, at, 4, collective.Float32) }
	require.True(t, sameMemory(a, a))
	require.True(t, sameMemory(a, a.Slice(0, 2)))
	require.False(t, sameMemory(a, b))
	require.False(t, sameMemory(a, a.Slice(1, 4)))
	require.True(t, sameMemory(gpu(4096), gpu(4096)))
	require.False(t, sameMemory(gpu(4096), gpu(8192)))
	require.False(t, sameMemory(a, gpu(4096)))
	require.False(t, sameMemory(gpu(4096), a))
}

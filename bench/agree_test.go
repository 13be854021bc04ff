package bench_test

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// differ has a change of each field of a Spec, and the name of the field in errors.
var differ = map[string]struct {
	says   string
	change func(*bench.Spec)
}{
	"Op":         {"operations", func(s *bench.Spec) { s.Op = "reducescatter" }},
	"DType":      {"types", func(s *bench.Spec) { s.DType = collective.BFloat16 }},
	"Reduction":  {"reductions", func(s *bench.Spec) { s.Reduction = collective.Max }},
	"Root":       {"roots", func(s *bench.Spec) { s.Root = 1 }},
	"Sizes":      {"sizes", func(s *bench.Spec) { s.Sizes = []int{4, 9} }},
	"Warmup":     {"warm-ups", func(s *bench.Spec) { s.Warmup = 7 }},
	"Iterations": {"iterations", func(s *bench.Spec) { s.Iterations = 7 }},
	"Check":      {"checks", func(s *bench.Spec) { s.Check = true }},
	"Time":       {"times", func(s *bench.Spec) { s.Time = time.Second }},
	"Garbage":    {"garbage", func(s *bench.Spec) { s.Garbage = 1 }},
	"Way":        {"orders or algorithms", func(s *bench.Spec) { s.Way = "ring" }},
}

// mayDiffer are the fields that are a rank's own business.
var mayDiffer = []string{"Alloc", "Device", "Each"}

// The fields of a Spec are compared between the ranks, all but those that may differ.
// If you add a field, add it here and to agree.
func TestEveryFieldOfASpecIsCompared(t *testing.T) {
	fields := reflect.TypeFor[bench.Spec]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		if slices.Contains(mayDiffer, name) {
			continue
		}
		c, ok := differ[name]
		require.True(t, ok, "no test changes Spec.%s", name)
		collectivetest.Run(t, collectivetest.Local(t, 2), func(ctx context.Context, g *collective.Group) {
			s := bench.Spec{Op: "allreduce", DType: collective.Float32, Reduction: collective.Sum, Sizes: []int{4, 8}, Iterations: 1}
			if g.Rank() == 1 {
				c.change(&s)
			}
			rows, err := bench.Run(ctx, g, s)
			assert.Empty(t, rows, name)
			var e *bench.SpecError
			if assert.ErrorAs(t, err, &e, name) {
				assert.Equal(t, &bench.SpecError{Fields: []string{c.says}, Ranks: []int{1}, Names: []string{g.View().Name(1)}}, e, name)
			}
		})
	}
}

// Every rank that differs from rank 0 is named, in rank order, and every field once.
func TestSpecErrorNamesAllRanks(t *testing.T) {
	groups := collectivetest.Local(t, 4)
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		s := bench.Spec{Op: "allreduce", DType: collective.Float32, Reduction: collective.Sum, Sizes: []int{4}, Iterations: 1}
		switch g.Rank() {
		case 1:
			s.Iterations = 3
		case 3:
			s.Iterations, s.Warmup = 5, 2
		}
		_, err := bench.Run(ctx, g, s)
		var e *bench.SpecError
		if assert.ErrorAs(t, err, &e) {
			assert.Equal(t, []int{1, 3}, e.Ranks)
			assert.Equal(t, []string{"iterations", "warm-ups"}, e.Fields)
		}
	})
	e := &bench.SpecError{Fields: []string{"types"}, Ranks: []int{1}, Names: []string{"vm1/0"}}
	require.EqualError(t, e, "bench: vm1/0 differs from rank 0 in types: give the same command on every machine")
	e = &bench.SpecError{Fields: []string{"types", "sizes"}, Ranks: []int{1, 3}, Names: []string{"vm1/0", "vm2/0"}}
	require.EqualError(t, e, "bench: vm1/0, vm2/0 differ from rank 0 in types and sizes: give the same command on every machine")
}

// Ranks may have different memory and listeners.
func TestFieldsThatMayDiffer(t *testing.T) {
	collectivetest.Run(t, collectivetest.Local(t, 2), func(ctx context.Context, g *collective.Group) {
		s := bench.Spec{Op: "allreduce", DType: collective.Float32, Reduction: collective.Sum, Sizes: []int{4}, Iterations: 1, Check: true}
		if g.Rank() == 1 {
			s.Each = func(bench.Row) {}
			s.Alloc = func(_ collective.DType, n int) (collective.Vector, error) {
				return collective.Of(make([]float32, n)), nil
			}
		}
		rows, err := bench.Run(ctx, g, s)
		assert.NoError(t, err)
		assert.Len(t, rows, 1)
	})
}

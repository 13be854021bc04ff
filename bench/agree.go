package bench

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
)

// A SpecError lists the ranks whose Spec differs from rank 0's, and the fields that
// differ.
type SpecError struct {
	Fields []string // in words
	Ranks  []int
	Names  []string // of these ranks
}

// Error returns one line that says what to do.
func (e *SpecError) Error() string {
	verb := "differs"
	if len(e.Names) > 1 {
		verb = "differ"
	}
	return fmt.Sprintf("bench: %s %s from rank 0 in %s: give the same command on every machine",
		strings.Join(e.Names, ", "), verb, strings.Join(e.Fields, " and "))
}

// agree compares the Specs of all ranks before anything is measured.
func (s *Spec) agree(ctx context.Context, g *collective.Group) error {
	fields := []struct {
		name  string
		value any
	}{
		{"operations", s.Op}, {"types", s.DType}, {"reductions", s.Reduction}, {"roots", s.Root}, {"sizes", s.Sizes},
		{"warm-ups", s.Warmup}, {"iterations", s.Iterations}, {"times", s.Time}, {"checks", s.Check}, {"garbage", s.Garbage}, {"orders or algorithms", s.Way},
	}
	mine := make([]int64, len(fields))
	for i, f := range fields {
		h := fnv.New64a()
		fmt.Fprint(h, f.value)
		mine[i] = int64(h.Sum64())
	}
	every := make([]int64, len(mine)*g.Size())
	if err := collective.AllGather(ctx, g, every, mine); err != nil {
		return fmt.Errorf("bench: comparing the settings of the ranks: %w", err)
	}
	e := &SpecError{}
	for r := range g.Size() {
		theirs := every[r*len(mine) : (r+1)*len(mine)]
		if slices.Equal(theirs, every[:len(mine)]) {
			continue
		}
		e.Ranks, e.Names = append(e.Ranks, r), append(e.Names, g.View().Name(r))
		for i, f := range fields {
			if theirs[i] != every[i] && !slices.Contains(e.Fields, f.name) {
				e.Fields = append(e.Fields, f.name)
			}
		}
	}
	if e.Ranks == nil {
		return nil
	}
	return e
}

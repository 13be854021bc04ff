package trainer

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Slots of a State within a round: the values that the round began with, and those of each
// rank but rank 0, whose values are saved as the parameters.
const (
	slotShared = "shared"
	slotValues = "values"
)

// rankSlot is the name of what a rank keeps for itself. That of rank 0 has no suffix, so
// AllReduce can resume from it.
func rankSlot(name string, rank int) string {
	if rank == 0 {
		return name
	}
	return name + "." + strconv.Itoa(rank)
}

// IsRoundSlot reports whether a slot of a State is one that LocalSGD adds to those of its
// inner optimizer.
func IsRoundSlot(name string, inner []string) bool {
	base, suffix, ofRank := strings.Cut(name, ".")
	if !ofRank {
		return name == slotOuter || name == slotShared
	}
	rank, err := strconv.Atoi(suffix)
	return err == nil && rank > 0 && rankSlot(base, rank) == name && (base == slotValues || slices.Contains(inner, base))
}

// State implements Strategy. All ranks send what they keep for themselves to where it is
// wanted: the inner optimizer's state and, within a round, their values.
func (l *LocalSGD) State(ctx context.Context, wanted bool) (State, error) {
	s, err := l.outer.State(ctx, wanted)
	if err != nil {
		return s, err
	}
	s.Step = l.state.Step
	if wanted, err = agreeWanted(ctx, l.group, wanted); err != nil {
		return s, fmt.Errorf("trainer: agreeing on a snapshot: %w", err)
	}
	if !wanted {
		return s, nil
	}
	for _, name := range l.inner.Slots() {
		if err := l.gather(ctx, &s, name, hostCopy(l.backend, l.state.Slots[name])); err != nil {
			return s, err
		}
	}
	if l.round.open {
		if err := l.gather(ctx, &s, slotValues, hostCopy(l.backend, l.params.Values)); err != nil {
			return s, err
		}
		delete(s.Slots, slotValues) // rank 0's
		s.Slots[slotShared] = slices.Clone(hostCopy(l.backend, l.shared.Values))
	}
	return s, l.backend.Sync(ctx)
}

// gather adds the arenas of all ranks to a State, on rank 0.
func (l *LocalSGD) gather(ctx context.Context, s *State, name string, mine []float32) error {
	all, err := gatherArenas(ctx, l.group, mine)
	if err != nil {
		return fmt.Errorf("trainer: gathering %q of all ranks: %w", name, err)
	}
	for rank, x := range all {
		s.Slots[rankSlot(name, rank)] = x
	}
	return nil
}

package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
)

// The strategies whose workers communicate once in a round.
const (
	localSGD = "local-sgd"
	diLoCo   = "diloco"
)

// inRounds reports whether the workers communicate once in a round.
func (f *Spec) inRounds() bool { return f.Strategy == localSGD || f.Strategy == diLoCo }

// rounds returns the rounds of the strategy. They are of no use unless inRounds.
func (f *Spec) rounds() trainer.Rounds {
	if f.Strategy == localSGD {
		return trainer.Averaging(f.Gradients.Rounds.Steps)
	}
	return f.Gradients.Rounds
}

// checkRounds finds what is wrong with Gradients.Rounds, and what cannot be combined with a
// strategy that uses them.
func (f *Spec) checkRounds() error {
	const why = "%s cannot be combined with --strategy %s, whose workers do not combine gradients: leave it out"
	if !f.inRounds() {
		return nil
	}
	if err := f.rounds().Check(); err != nil {
		return fmt.Errorf("--strategy %s: %w", f.Strategy, err)
	}
	switch {
	case f.Gradients.Reduce == "sum" || f.Gradients.Reduce == "total":
		return fmt.Errorf(why, "--reduce "+f.Gradients.Reduce, f.Strategy)
	case f.Gradients.Faithful:
		return fmt.Errorf(why, "--faithful-accumulate", f.Strategy)
	}
	return nil
}

// errRounds is why steps in rounds are not recorded.
var errRounds = errors.New("with this --strategy, the host decides when workers take an outer step")

func (r *rank) localSGD(_ context.Context, b nn.Backend) trainer.Strategy {
	s := trainer.NewLocalSGD(b, r.training.optimizer, r.training.Spec.rounds())
	s.SetCompression(r.training.Compression)
	s.SetBucket(r.training.Spec.Gradients.Bucket)
	return s
}

// strategyText describes the strategy, in notes and warnings. Strategies that give the same
// bits have the same text.
func (f *Spec) strategyText() string {
	if f.asynchronous() {
		return f.policy().String()
	}
	if !f.inRounds() {
		return allReduce
	}
	return f.Strategy + ", " + f.rounds().String()
}

// roundsPlan adds the rounds to the plan of the exchange.
func (f *Spec) roundsPlan() string {
	if !f.inRounds() || f.rounds().Steps == 1 {
		return ""
	}
	return fmt.Sprintf("; once in %d steps", f.rounds().Steps)
}

// roundArenas returns how many arenas a worker has for rounds.
func (f *Spec) roundArenas() int {
	switch {
	case !f.inRounds():
		return 0
	case f.rounds().Momentum == 0:
		return 2 // the shared values, and those before the last inner step
	}
	return 3
}

// moveRoundSlots sends the slots that a strategy in rounds adds to the optimizer's from
// source to rank 0.
func (r *rank) moveRoundSlots(ctx context.Context, source, elements int, mine trainer.State, to map[string][]float32) error {
	inner := r.training.optimizer.Slots()
	var names []string
	for name := range mine.Slots {
		if trainer.IsRoundSlot(name, inner) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	text := []byte(strings.Join(names, "\n"))
	length := []int64{int64(len(text))}
	if err := collective.Broadcast(ctx, r.group, length, source); err != nil || length[0] == 0 {
		return err
	}
	if r.group.Rank() != source {
		text = make([]byte, length[0])
	}
	if err := collective.Broadcast(ctx, r.group, text, source); err != nil {
		return err
	}
	for name := range strings.SplitSeq(string(text), "\n") {
		switch r.group.Rank() {
		case source:
			if err := r.group.Send(ctx, collective.Of(mine.Slots[name]), 0); err != nil {
				return err
			}
		case 0:
			to[name] = make([]float32, elements)
			if err := r.group.Recv(ctx, collective.Of(to[name]), source); err != nil {
				return err
			}
		}
	}
	return nil
}

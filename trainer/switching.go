package trainer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
)

// A Switching is the Strategy that uses one of several others at a time. It switches
// between two steps if a rank has asked for it (Request) or it was planned (Plan). A
// request is part of the next step, as Step.Switch, so all ranks switch after that step,
// even if it reached only one of them. A run that ends there does not switch.
//
// The next strategy starts from the values and the State of the one before. No step is
// lost, and between strategies with the same bits a switch changes none. Before it, Finish
// compares the values of all ranks, because Start gives all of them those of rank 0.
//
// The strategies must report the Step.Switch of other ranks, as those with an Agreement do.
// They are not Periodic. Steps cannot be recorded, because a recording contains the update
// of one strategy.
type Switching struct {
	choices  []Choice
	plan     []Switch
	observe  func(Switched) // may be nil
	group    *collective.Group
	current  int  // index of the Choice that takes steps
	next     int  // and of the one that takes the next step; all ranks agree on it
	streamed bool // Open has reached the current strategy

	wish  atomic.Int32 // 1 + index of the Choice that was requested here, or 0
	using atomic.Pointer[Switched]
}

var (
	_ Strategy = (*Switching)(nil)
	_ Streamer = (*Switching)(nil)
)

// A Choice is a strategy of a Switching. Names are different and the same on all ranks.
type Choice struct {
	Name     string
	Strategy Strategy
}

// A Switched describes a switch that was made.
type Switched struct {
	From, To string
	Steps    int // done before
	Took     time.Duration
}

// NewSwitching makes a Switching that begins with the first choice. The strategies become
// its own. All ranks pass the same names in the same order.
func NewSwitching(choices ...Choice) *Switching { return &Switching{choices: choices} }

// Plan requests switches in advance; their steps ascend. One rank is enough, but only the
// plan of rank 0 says with which strategy a run resumes. Call it before Start. The error
// names a strategy that is not among the choices.
func (s *Switching) Plan(switches []Switch) error {
	for _, w := range switches {
		if _, err := s.find(w.Strategy); err != nil {
			return err
		}
	}
	s.plan = switches
	return nil
}

// Observe sets a function that is called after each switch, in the goroutine of Step.
func (s *Switching) Observe(f func(Switched)) { s.observe = f }

// Request asks all ranks to switch to a choice. It returns at once: Using says when they
// have. Any goroutine may call it. The error names the choices.
func (s *Switching) Request(name string) error {
	i, err := s.find(name)
	if err == nil {
		s.wish.Store(int32(i + 1))
	}
	return err
}

// Using returns the strategy in use, as To, and since when. It is the zero value before
// Start. Any goroutine may call it.
func (s *Switching) Using() Switched {
	if u := s.using.Load(); u != nil {
		return *u
	}
	return Switched{}
}

// find returns the index of a choice.
func (s *Switching) find(name string) (int, error) {
	i := slices.IndexFunc(s.choices, func(c Choice) bool { return c.Name == name })
	if i < 0 {
		return 0, fmt.Errorf("the strategy must be %s, not %q", strings.Join(s.names(), " or "), name)
	}
	return i, nil
}

func (s *Switching) names() []string {
	names := make([]string, len(s.choices))
	for i, c := range s.choices {
		names[i] = c.Name
	}
	return names
}

func (s *Switching) strategy() Strategy { return s.choices[s.current].Strategy }

// Start implements Strategy. The first choice starts. If the plan of rank 0 has another for
// the next step, that step begins with a switch.
func (s *Switching) Start(ctx context.Context, start Start) (Place, error) {
	if len(s.choices) == 0 {
		return Place{}, errors.New("trainer: a Switching needs at least one Choice")
	}
	for i, c := range s.choices {
		if first, _ := s.find(c.Name); first != i {
			return Place{}, fmt.Errorf("trainer: two strategies to switch between are called %q; give them different names", c.Name)
		}
		if c.Strategy == nil {
			return Place{}, fmt.Errorf("trainer: the strategy %q to switch to or from is nil", c.Name)
		}
		if _, periodic := c.Strategy.(Periodic); periodic {
			return Place{}, fmt.Errorf("trainer: cannot switch to or from %s, whose ranks do not agree after every step", c.Name)
		}
	}
	s.group, s.current, s.streamed = start.Group, 0, false
	place, err := s.strategy().Start(ctx, start)
	if err != nil {
		return place, err
	}
	next := make([]int64, s.group.Size())
	if err := collective.AllGather(ctx, s.group, next, []int64{int64(s.planned(place.Step))}); err != nil {
		return Place{}, fmt.Errorf("trainer: agreeing on the first strategy: %w", err)
	}
	s.next = int(next[0])
	s.using.Store(&Switched{To: s.choices[0].Name, Steps: place.Step})
	return place, nil
}

// planned returns the choice that the plan has after this many steps.
func (s *Switching) planned(steps int) (choice int) {
	for _, w := range s.plan {
		if w.Steps <= steps {
			choice, _ = s.find(w.Strategy) // Plan has found it
		}
	}
	return choice
}

// Open implements Streamer. A step that begins with a switch does not stream.
func (s *Switching) Open(ctx context.Context, p *nn.Params, step Step) (final func(lo int)) {
	streamer, ok := s.strategy().(Streamer)
	if !ok || s.next != s.current {
		return func(int) {}
	}
	s.streamed = true
	return streamer.Open(ctx, p, step)
}

// Abandon implements Streamer.
func (s *Switching) Abandon(cause error) {
	if s.streamed {
		s.strategy().(Streamer).Abandon(cause)
	}
	s.streamed = false
}

// Step implements Strategy.
func (s *Switching) Step(ctx context.Context, p *nn.Params, step Step) (Report, error) {
	s.streamed = false
	if s.next != s.current {
		if err := s.change(ctx, p, step.Index); err != nil {
			return Report{}, err
		}
	}
	wish := s.wish.Load()
	if int(wish) == s.current+1 {
		s.wish.CompareAndSwap(wish, 0)
		wish = 0
	}
	step.Switch = int(wish)
	for _, w := range s.plan { // goes before a wish, which the next step repeats
		if w.Steps == step.Index+1 {
			i, _ := s.find(w.Strategy)
			step.Switch = i + 1
		}
	}
	report, err := s.strategy().Step(ctx, p, step)
	if err == nil && report.Switch != 0 {
		s.next = report.Switch - 1
	}
	return report, err
}

// change makes the switch that all ranks have agreed on. The values stay as they are, even
// if it fails: Start gives a rank those that it has.
func (s *Switching) change(ctx context.Context, p *nn.Params, steps int) error {
	begin, from, to := time.Now(), s.choices[s.current], s.choices[s.next]
	ctx, cancel := context.WithTimeoutCause(ctx, longStepTimeout, collective.ErrLate)
	defer cancel()
	err := from.Strategy.Finish(ctx, p)
	var state State
	if err == nil {
		state, err = from.Strategy.State(ctx, s.group.Rank() == 0)
	}
	if err == nil {
		_, err = to.Strategy.Start(ctx, Start{Group: s.group, Params: p, From: state})
	}
	if err == nil {
		err = from.Strategy.Close() // frees its memory
	}
	if err != nil {
		return fmt.Errorf("trainer: switching from %s to %s after step %d: %w", from.Name, to.Name, steps, err)
	}
	s.current = s.next
	done := Switched{From: from.Name, To: to.Name, Steps: steps, Took: time.Since(begin)}
	s.using.Store(&done)
	if s.observe != nil {
		s.observe(done)
	}
	return nil
}

// Total implements Strategy.
func (s *Switching) Total(ctx context.Context, own nn.Counts) (nn.Counts, error) {
	return s.strategy().Total(ctx, own)
}

// Finish implements Strategy.
func (s *Switching) Finish(ctx context.Context, p *nn.Params) error {
	return s.strategy().Finish(ctx, p)
}

// State implements Strategy.
func (s *Switching) State(ctx context.Context, wanted bool) (State, error) {
	return s.strategy().State(ctx, wanted)
}

// Close implements Strategy.
func (s *Switching) Close() error {
	var errs []error
	for _, c := range s.choices {
		errs = append(errs, c.Strategy.Close())
	}
	return errors.Join(errs...)
}

package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// switchable are the strategies between which a running job can switch.
var switchable = []string{allReduce, psSync}

// Switchable returns the strategies between which a running job can switch.
func Switchable() []string { return slices.Clone(switchable) }

// errNoSwitch completes why a job cannot switch.
var errNoSwitch = fmt.Errorf("only %s can be switched", strings.Join(switchable, " and "))

// switches returns what Gradients.Switch says, which checkSwitch has accepted.
func (f *Spec) switches() []trainer.Switch {
	if f.Gradients.Switch == "" {
		return nil
	}
	all, _ := trainer.ParseSwitches(f.Gradients.Switch)
	return all
}

// checkSwitch finds what is wrong with Gradients.Switch.
func (f *Spec) checkSwitch() error {
	if f.Gradients.Switch == "" {
		return nil
	}
	if _, err := trainer.ParseSwitches(f.Gradients.Switch); err != nil {
		return fmt.Errorf("--switch %w", err)
	}
	for _, s := range f.switches() {
		if !slices.Contains(switchable, s.Strategy) {
			return fmt.Errorf("--switch must name %s, not %q", strings.Join(switchable, " or "), s.Strategy)
		}
	}
	if f.asynchronous() && f.Strategy == psSync {
		return errors.New("--switch cannot be combined with --quorum or --straggler-timeout")
	}
	if !slices.Contains(switchable, f.strategyName()) {
		return fmt.Errorf("--switch cannot be combined with --strategy %s: %w", f.Strategy, errNoSwitch)
	}
	return nil
}

// owned reports whether parameters have owners that update them: servers, or workers with
// ps-peers.
func (f *Spec) owned() bool { return f.serves() || f.Strategy == psPeers }

// serves reports whether the training uses parameter servers from the beginning or is
// planned to.
func (f *Spec) serves() bool {
	return f.Strategy == psSync || f.Strategy == psAsync || slices.ContainsFunc(f.switches(), func(s trainer.Switch) bool { return s.Strategy == psSync })
}

// fixed returns why the workers of a run cannot switch their strategy, or nil.
func fixed(s *Training) error {
	switch {
	case !slices.Contains(switchable, s.Spec.strategyName()):
		return fmt.Errorf("the job uses %s, and %w", s.Spec.Strategy, errNoSwitch)
	case s.Spec.asynchronous():
		return errors.New("its parameter servers do not wait for all workers")
	case s.Compression.Form != trainer.Exact:
		return errors.New("gradients are compressed, which parameter servers do not support")
	case s.Placement.OnGPU():
		return errors.New("the workers compute on GPUs, and parameter servers work in host memory")
	}
	return nil
}

// makeStrategy makes the strategy of a rank. If the job can switch, it is a
// trainer.Switching that users can send requests.
func (r *rank) makeStrategy(ctx context.Context, b nn.Backend) trainer.Strategy {
	f := &r.training.Spec
	if err := fixed(r.training); err != nil {
		r.worker.Fix(err)
		return f.strategy()(r, ctx, b)
	}
	choices := []trainer.Choice{{Name: f.strategyName(), Strategy: f.strategy()(r, ctx, b)}}
	for _, name := range switchable {
		if name != f.strategyName() {
			choices = append(choices, trainer.Choice{Name: name, Strategy: strategies[name](r, ctx, b)})
		}
	}
	s := trainer.NewSwitching(choices...)
	_ = s.Plan(f.switches()) // checkSwitch has accepted the names
	s.Observe(r.switched)
	r.worker.Switch(s)
	return s
}

// switched is called after each switch.
func (r *rank) switched(s trainer.Switched) {
	r.switches = append(r.switches, s)
	if r.leader {
		r.events.Emit(&event.Switched{From: s.From, Strategy: s.To, Step: s.Steps, Ms: ms(s.Took)})
	}
}

// switchesPlan adds the switches that were made to the plan of the exchange.
func (r *rank) switchesPlan() string {
	if len(r.switches) == 0 {
		return ""
	}
	last := r.switches[len(r.switches)-1]
	text := fmt.Sprintf("; %s after step %d", last.To, last.Steps)
	if n := len(r.switches); n > 1 {
		text += fmt.Sprintf(", the last of %d switches", n)
	}
	return text
}

package crew

import (
	"encoding/json"
	"strings"
	"sync/atomic"

	"github.com/ringtrain/ringtrain/trainer"
)

// AskStrategy is the question that a worker answers with a StrategyAnswer, by gossip. With
// the name of a strategy after it, it asks all workers to switch to that one.
const AskStrategy = "strategy "

// A StrategyAnswer is a worker's answer to AskStrategy, as JSON.
type StrategyAnswer struct {
	Strategy string `json:"strategy,omitempty"` // in use
	Steps    int    `json:"steps,omitempty"`    // done before it
	Error    string `json:"error,omitempty"`    // why the workers do not switch
}

// A Switcher is the strategy of a run that can switch, such as a *trainer.Switching.
type Switcher interface {
	// Request asks all ranks to switch to a strategy, and returns at once.
	Request(name string) error
	// Using returns the strategy in use, as To; the zero value before the training.
	Using() trainer.Switched
}

// A switchboard passes requests to switch the strategy to the training.
type switchboard struct {
	training atomic.Pointer[switchable] // nil until there is one
}

// switchable is the strategy of a run, or why it cannot be switched.
type switchable struct {
	strategy Switcher
	fixed    error
}

// answer returns the answer to a question; nil if it is not AskStrategy.
func (b *switchboard) answer(question string) []byte {
	name, ok := strings.CutPrefix(question, AskStrategy)
	if !ok {
		return nil
	}
	text, _ := json.Marshal(b.request(name)) // cannot fail: it has strings and a number
	return text
}

func (b *switchboard) request(name string) StrategyAnswer {
	t := b.training.Load()
	switch {
	case t == nil || t.fixed == nil && t.strategy.Using().To == "":
		return StrategyAnswer{Error: "the workers have not begun to train: ask again later"}
	case t.fixed != nil:
		return StrategyAnswer{Error: t.fixed.Error()}
	}
	if name != "" {
		if err := t.strategy.Request(name); err != nil {
			return StrategyAnswer{Error: err.Error()}
		}
	}
	now := t.strategy.Using()
	return StrategyAnswer{Strategy: now.To, Steps: now.Steps}
}

// Switch makes other processes' requests for a strategy reach s. w may be nil.
func (w *Worker) Switch(s Switcher) { w.connect(switchable{strategy: s}) }

// Fix answers requests for a strategy with an error: why the workers cannot switch. w may
// be nil.
func (w *Worker) Fix(why error) { w.connect(switchable{fixed: why}) }

func (w *Worker) connect(t switchable) {
	if w != nil {
		w.strategy.training.Store(&t)
	}
}

package membership

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// An adversary decides the fate of every message, and causes alarms and deaths. It
// cannot forge messages or put two live processes into one place.
type adversary struct {
	*world
	pending []message
}

// act lets the adversary do one thing. The weights let a View form now and then,
// and later break.
func (a *adversary) act(t *rapid.T) {
	slot := rapid.IntRange(0, len(a.procs)-1).Draw(t, "slot")
	one, other := a.procs[slot], rapid.SampledFrom(a.births).Draw(t, "other")
	switch action := rapid.IntRange(0, 99).Draw(t, "action"); {
	case action < 75 && len(a.pending) > 0:
		i := rapid.IntRange(0, min(len(a.pending), 6)-1).Draw(t, "message")
		msg := a.pending[i]
		if action > 5 { // else a copy arrives later
			a.pending = slices.Delete(a.pending, i, i+1)
		}
		if action > 15 { // else this copy is lost
			a.deliver(msg)
		}
	case action < 80 && len(a.pending) > 0: // a late message
		i := rapid.IntRange(0, len(a.pending)-1).Draw(t, "message")
		msg := a.pending[i]
		a.pending = append(slices.Delete(a.pending, i, i+1), msg)
	case action < 88:
		a.now = a.now.Add(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond)
		one.Tick(a.now)
	case action < 90 && one.learner.held == nil:
		a.bury(one, other)
	case action < 93:
		a.introduce()
	case action < 95 && one.learner.held == nil, action < 98 && one.learner.held != nil:
		one.dead = true
		a.start(slot)
		a.introduce()
	default:
		one.Next(a.now, nil)
	}
	a.flush(a.procs[slot])
	a.queue = nil // only the adversary acts
}

// introduce lets all live processes see each other.
func (a *adversary) introduce() {
	for _, p := range a.procs {
		for _, q := range a.births {
			if q.dead {
				p.Down(a.now, q.id)
			} else {
				p.Up(a.now, expects(q.member, a.nodes))
			}
			a.flush(p)
		}
	}
}

func TestViewsUnderAnAdversary(t *testing.T) {
	agreed, worlds := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 4).Draw(t, "processes")
		a := &adversary{world: newWorld(1, n, 0, 1, weather{slander: true})}
		a.tracing = true
		a.post = func(messages []message) { a.pending = append(a.pending, messages...) }
		for slot := range n {
			a.start(slot)
		}
		a.introduce()
		for range rapid.IntRange(100, 2000).Draw(t, "actions") {
			a.act(t)
			if a.broken != "" {
				t.Fatalf("%s", a.story())
			}
		}
		agreed += len(a.agreed)
		worlds++
	})
	require.Greater(t, agreed, worlds/2, "the adversary hardly ever let a View form")
}

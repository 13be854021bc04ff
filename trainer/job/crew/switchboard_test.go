package crew

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer"
)

// A requests is a Switcher that keeps what it is asked for.
type requests struct {
	asked []string
	using trainer.Switched
}

func (r *requests) Request(name string) error {
	if name == "c" {
		return errors.New("not c")
	}
	r.asked = append(r.asked, name)
	return nil
}

func (r *requests) Using() trainer.Switched { return r.using }

// A worker answers requests for a strategy from its start to its end.
func TestStrategyAnswers(t *testing.T) {
	w := &Worker{}
	ask := func(name string) (a StrategyAnswer) {
		require.NoError(t, json.Unmarshal(w.answer([]byte(AskStrategy+name)), &a))
		return a
	}
	require.Nil(t, w.answer([]byte("?")), "other questions have no answer")
	notYet := StrategyAnswer{Error: "the workers have not begun to train: ask again later"}
	require.Equal(t, notYet, ask("a"))

	w.Fix(errors.New("never"))
	require.Equal(t, StrategyAnswer{Error: "never"}, ask("a"))

	s := &requests{}
	w.Switch(s)
	require.Equal(t, notYet, ask("b"))
	s.using = trainer.Switched{From: "b", To: "a", Steps: 3}
	require.Equal(t, StrategyAnswer{Strategy: "a", Steps: 3}, ask(""))
	require.Empty(t, s.asked)
	require.Equal(t, StrategyAnswer{Error: "not c"}, ask("c"))
	require.Equal(t, StrategyAnswer{Strategy: "a", Steps: 3}, ask("b"), "it switches later")
	require.Equal(t, []string{"b"}, s.asked)

	(*Worker)(nil).Switch(s) // for ranks that are no process of their own
	(*Worker)(nil).Fix(nil)
}

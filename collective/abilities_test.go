package collective

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// An able transport says that it can do everything.
type able struct{ shower }

func (a *able) Abilities() Abilities {
	return Abilities{
		Post: a, Reduce: a, Show: a.show, NoteWaits: func(*Waits) bool { return true },
		Next:   func(context.Context, []int, *Header) (int, error) { return -1, nil },
		Behind: func(uint64) (int, bool) { return 0, false }, Streams: func(int) int { return 3 },
		Failed: make(chan struct{}), Err: func() error { return &RankError{Rank: 2, Err: ErrLost} }, Free: func() {},
	}
}

func (a *able) Post(int, *Header, [][]byte) error { return nil }
func (a *able) Flush(context.Context) error       { return nil }

// A wrapper has no ability that it does not mention, and a Sub only those that
// are true of some ranks, in its own numbers.
func TestWrappersCopyAbilities(t *testing.T) {
	a := new(able)
	require.NotNil(t, AbilitiesOf(a).Post)
	require.Equal(t, Abilities{}, AbilitiesOf(struct{ Transport }{a}))

	sub := AbilitiesOf(&subTransport{t: a, can: AbilitiesOf(a), ranks: []int{1, 2}})
	require.NotNil(t, sub.Post)
	require.NotNil(t, sub.Failed)
	require.Equal(t, 3, sub.Streams(1))
	var lost *RankError
	require.ErrorAs(t, sub.Err(), &lost)
	require.Equal(t, 1, lost.Rank)
	require.Nil(t, sub.Reduce)
	require.Nil(t, sub.Show)
	require.Nil(t, sub.NoteWaits)
	require.Nil(t, sub.Next)
	require.Nil(t, sub.Behind)
	require.Nil(t, sub.Free)

	none := AbilitiesOf(&subTransport{t: a, ranks: []int{1, 2}})
	require.Nil(t, none.Post)
	require.Nil(t, none.Err)
}

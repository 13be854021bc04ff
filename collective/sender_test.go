package collective_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// full is a Poster whose peers accept nothing until the deadline. Like that of a Sub, it
// does not note its waits.
type full struct {
	idle
	posts    bool // Post does not wait
	deadline context.CancelCauseFunc
	broken   context.Context
	abort    context.CancelCauseFunc
}

func (f *full) Abilities() collective.Abilities { return collective.Abilities{Post: f} }

func (f *full) Post(int, *collective.Header, [][]byte) error {
	if f.posts {
		return nil
	}
	return f.Flush(context.Background())
}

func (f *full) Flush(context.Context) error {
	f.deadline(context.DeadlineExceeded)
	<-f.broken.Done()
	return context.Cause(f.broken)
}

func (f *full) Abort(cause *collective.RankError) { f.abort(cause) }

// If a deadline passes while a rank waits for room, its error names the receiver.
func TestDeadlineNamesTheReceiver(t *testing.T) {
	for name, posts := range map[string]bool{"Post": false, "Flush": true} {
		t.Run(name, func(t *testing.T) {
			f := &full{posts: posts}
			f.broken, f.abort = context.WithCancelCause(t.Context())
			ctx, cancel := context.WithCancelCause(t.Context())
			f.deadline = cancel
			v := collective.View{Members: make([]collective.Member, 3)}
			g := collective.NewGroup(v, collective.OverTransport(v, f), collective.Options{})
			defer g.Close()
			err := g.Send(ctx, collective.Of([]byte{1}), 2)
			var late *collective.RankError
			require.ErrorAs(t, err, &late)
			require.ErrorIs(t, err, collective.ErrLate)
			require.Equal(t, 2, late.Rank)
		})
	}
}

package collective_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

func TestMessages(t *testing.T) { collectivetest.TestMessages(t, collectivetest.Local) }

// A Sub, and a Transport without Abilities, can make calls but not exchange messages.
func TestMessagesUnsupported(t *testing.T) {
	views, transports := byMessages(t, 2)
	groups := collectivetest.Groups(t, views, transports, collective.Options{})
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		sub, err := g.Sub(ctx, 0, 0)
		require.NoError(t, err)
		for _, g := range []*collective.Group{g, sub} {
			_, err := g.Messages(ctx)
			require.ErrorIs(t, err, collective.ErrUnsupported)
			require.NoError(t, g.Barrier(ctx))
		}
		require.NoError(t, sub.Close())
	})
}

// A single rank has no other to wait for.
func TestMessagesAlone(t *testing.T) {
	g := collectivetest.Local(t, 1)[0]
	m, err := g.Messages(t.Context())
	require.NoError(t, err)
	_, err = m.Next(t.Context())
	require.Equal(t, io.EOF, err)
	require.NoError(t, m.End(t.Context()))
	require.NoError(t, g.Barrier(t.Context()))
}

// Traffic counts every segment of a message, and the one that ends the exchange.
func TestTrafficOfMessages(t *testing.T) {
	collectivetest.Ranks(t, 2, func(ctx context.Context, g *collective.Group) {
		m, err := g.Messages(ctx)
		require.NoError(t, err)
		want := collective.Traffic{Messages: 1}
		if g.Rank() == 0 {
			require.NoError(t, m.Send(ctx, 1, 0, collective.Of(make([]byte, 600_000))))
			want = collective.Traffic{Messages: 3 + 1, Payload: 600_000}
		}
		require.NoError(t, m.End(ctx))
		require.Equal(t, want, g.Traffic())
		require.ErrorContains(t, m.End(ctx), "after End")
		require.NoError(t, g.Close())
		require.ErrorIs(t, m.End(ctx), collective.ErrClosed)
	})
}

// The flight record shows a rank that waits for messages, and how long it waited.
func TestFlightOfMessages(t *testing.T) {
	groups := collectivetest.Local(t, 2)
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		require.NoError(t, g.Barrier(ctx))
		m, err := g.Messages(ctx)
		require.NoError(t, err)
		if g.Rank() == 0 {
			found, err := m.Next(ctx)
			require.NoError(t, err)
			require.False(t, found.End)
			require.NoError(t, m.End(ctx))
			return
		}
		for waits := false; !waits && ctx.Err() == nil; runtime.Gosched() {
			f := groups[0].Flight()
			if c := f.InProgress(); c != nil && c.Call.Kind == collective.KindMessage {
				require.Equal(t, "Next()", c.Call.String())
				require.EqualValues(t, 1, c.Seq)
				require.Nil(t, f.Waiting, "it waits for any rank")
				waits = true
			}
		}
		require.NoError(t, m.Send(ctx, 0, 0, collective.Of([]byte{1})))
		require.NoError(t, m.End(ctx))
	})
	f := groups[0].Flight()
	require.Nil(t, f.InProgress())
	require.Len(t, f.Calls, 3) // the Barrier, a Next, and that of End
	require.Positive(t, f.Calls[1].Took)
}

// Rank 0 serves the others in the order in which they ask.
func ExampleGroup_Messages() {
	const size = 3
	ctx := context.Background()
	views, transports := collective.Local(size)
	var ranks sync.WaitGroup
	for r := range size {
		ranks.Go(func() {
			g := collective.NewGroup(views[r], collective.OverTransport(views[r], transports[r]), collective.Options{})
			defer g.Close()
			if err := work(ctx, g); err != nil {
				fmt.Println(err)
			}
		})
	}
	ranks.Wait()
	// Output:
	// 4 squared is 16
	// 4 squared is 16
}

func work(ctx context.Context, g *collective.Group) error {
	m, err := g.Messages(ctx)
	if err != nil {
		return err
	}
	number := []int64{4}
	if g.Rank() > 0 {
		if err := m.Send(ctx, 0, 0, collective.Of(number)); err != nil {
			return err
		}
	}
	for {
		found, err := m.Next(ctx)
		switch {
		case err == io.EOF:
			return m.End(ctx)
		case err != nil:
			return err
		case found.End:
			continue // possibly the other client's; the answer is still to come
		}
		if err := m.Recv(ctx, collective.Of(number)); err != nil {
			return err
		}
		if g.Rank() > 0 {
			fmt.Println("4 squared is", number[0])
			return m.End(ctx)
		}
		number[0] *= number[0]
		if err := m.Send(ctx, found.From, 0, collective.Of(number)); err != nil {
			return err
		}
	}
}

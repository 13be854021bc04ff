package collectivetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ringtrain/ringtrain/collective"
)

// testMessageMistakes makes mistakes that break nothing.
func testMessageMistakes(t *testing.T, make_ Maker) {
	exchange(t, make_(t, 2), func(ctx context.Context, g *collective.Group, m *collective.Messages) {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		if g.Rank() == 1 {
			none := collective.Of([]byte(nil))
			for _, to := range []int{-1, 1, 2} {
				assert.ErrorContains(t, m.Send(ctx, to, 0, none), "use another rank")
			}
			assert.ErrorIs(t, m.Send(ctx, 0, 0, collective.Vector{}), collective.ErrUnsupported)
			assert.ErrorIs(t, m.Send(ctx, 0, 0, collective.OnDevice(0, 4096, 1, collective.Float32)), collective.ErrUnsupported)
			assert.ErrorIs(t, m.Send(ended, 0, 0, none), context.Canceled)
			assert.NoError(t, m.Send(ctx, 0, 5, collective.Of([]float32{1, 2})))
			return
		}
		s := make([]float32, 2)
		assert.ErrorContains(t, m.Recv(ctx, collective.Of(s)), "call Next first")
		_, err := nextMessage(ctx, m)
		assert.NoError(t, err)
		for _, v := range []collective.Vector{collective.Of(make([]float32, 1)), collective.Of(make([]int32, 2)), collective.Of(make([]float64, 1))} {
			assert.ErrorContains(t, m.Recv(ctx, v), "Recv of Message(float32[2], tag 5) from rank 1 on rank 0: the vector must have this type and length")
		}
		assert.ErrorIs(t, m.Recv(ended, collective.Of(s)), context.Canceled)
		assert.NoError(t, m.Recv(ctx, collective.Of(s)))
		assert.Equal(t, []float32{1, 2}, s)
		assert.ErrorContains(t, m.Recv(ctx, collective.Of(s)), "call Next first")
	})
}

// testCallDuringMessages makes a call on a rank that exchanges messages itself, which
// breaks nothing.
func testCallDuringMessages(t *testing.T, make Maker) {
	groups := make(t, 2)
	exchange(t, groups, func(ctx context.Context, g *collective.Group, m *collective.Messages) {
		assert.ErrorIs(t, g.Barrier(ctx), collective.ErrMessaging)
		assert.ErrorIs(t, g.BroadcastAsync(ctx, collective.Of([]byte{1}), 0).Wait(ctx), collective.ErrMessaging)
		_, err := g.Messages(ctx)
		assert.ErrorIs(t, err, collective.ErrMessaging)
	})
	Run(t, groups, func(ctx context.Context, g *collective.Group) { assert.NoError(t, g.Barrier(ctx)) })
}

// testCallElsewhere makes calls on rank 1 while the others exchange messages: in Next, or
// sending to it. All ranks get an error that says so.
func testCallElsewhere(t *testing.T, make_ Maker) {
	for name, call := range map[string]func(context.Context, *collective.Group) error{
		"Barrier()": func(ctx context.Context, g *collective.Group) error { return g.Barrier(ctx) },
		"AllReduce(float32[3], sum)": func(ctx context.Context, g *collective.Group) error {
			return collective.AllReduce(ctx, g, make([]float32, 3), collective.Sum)
		},
		"Broadcast(float32[300000], root 1)": func(ctx context.Context, g *collective.Group) error {
			return collective.Broadcast(ctx, g, make([]float32, 300_000), 1)
		},
	} {
		for _, sends := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, sends %v", name, sends), func(t *testing.T) {
				Run(t, make_(t, 3), func(ctx context.Context, g *collective.Group) {
					var err error
					if g.Rank() == 1 {
						err = call(ctx, g)
					} else if m, begin := g.Messages(ctx); assert.NoError(t, begin) {
						if sends {
							err = m.Send(ctx, 1, 0, collective.Of(make([]float32, 300_000)))
						}
						if err == nil {
							_, err = nextMessage(ctx, m)
						}
					}
					assert.ErrorIs(t, err, collective.ErrMismatch, "rank %d", g.Rank())
					assert.ErrorContains(t, err, "rank 1 called "+name)
					assert.ErrorContains(t, err, "exchanges messages")
					assert.Equal(t, err, g.Barrier(ctx), "a broken group stays broken")
				})
			})
		}
	}
}

// waitTogether runs fn on the last rank while all others are in Next, and returns their
// errors through check.
func waitTogether(t *testing.T, make_ Maker, fn func(ctx context.Context, g *collective.Group), check func(g *collective.Group, err error)) {
	const size = 4
	ready := meeting(size)
	Run(t, make_(t, size), func(ctx context.Context, g *collective.Group) {
		m, err := g.Messages(ctx)
		assert.NoError(t, err)
		ready()
		if g.Rank() == size-1 {
			fn(ctx, g)
			return
		}
		_, err = nextMessage(ctx, m)
		check(g, err)
		_, again := nextMessage(ctx, m)
		assert.Equal(t, err, again, "a broken group stays broken")
		assert.Equal(t, err, m.End(ctx))
		assert.Equal(t, err, g.Err())
	})
}

// testAbortDuringNext aborts on one rank while the others wait for messages.
func testAbortDuringNext(t *testing.T, make Maker) {
	waitTogether(t, make, func(_ context.Context, g *collective.Group) { g.Abort(errors.New("the disk is on fire")) },
		func(g *collective.Group, err error) {
			var lost *collective.RankError
			if assert.ErrorAs(t, err, &lost, "rank %d", g.Rank()) {
				assert.Equal(t, 3, lost.Rank)
				assert.Equal(t, g.View().Name(3), lost.Node)
				assert.Equal(t, collective.KindMessage, lost.Op.Kind)
				assert.ErrorContains(t, err, "failed during Next() #1 in epoch 1: the disk is on fire")
			}
		})
}

// testLeavesDuringNext closes the group of one rank, which has not ended its messages,
// while the others wait for messages.
func testLeavesDuringNext(t *testing.T, make Maker) {
	waitTogether(t, make, func(_ context.Context, g *collective.Group) { assert.NoError(t, g.Close()) },
		func(g *collective.Group, err error) {
			var left *collective.RankError
			if assert.ErrorAs(t, err, &left, "rank %d", g.Rank()) {
				assert.Equal(t, 3, left.Rank)
				assert.ErrorIs(t, err, collective.ErrLeft)
			}
		})
}

// testCloseDuringNext closes a group while another goroutine waits for messages in it.
func testCloseDuringNext(t *testing.T, make Maker) {
	groups := make(t, 2)
	m, err := groups[0].Messages(t.Context())
	assert.NoError(t, err)
	var waiter sync.WaitGroup
	waiter.Go(func() {
		_, err := nextMessage(t.Context(), m)
		assert.ErrorIs(t, err, collective.ErrClosed)
	})
	time.AfterFunc(5*time.Millisecond, func() { assert.NoError(t, groups[0].Close()) })
	waiter.Wait()
	assert.NoError(t, groups[0].Close())
	_, err = nextMessage(t.Context(), m)
	assert.ErrorIs(t, err, collective.ErrClosed)
	assert.ErrorIs(t, m.Send(t.Context(), 1, 0, collective.Of([]byte{1})), collective.ErrClosed)
}

// testSendCancelled cancels a Send after the receiver has seen only the header. Both ranks
// name the sender.
func testSendCancelled(t *testing.T, make Maker) {
	why := errors.New("the user pressed a key")
	endSend(t, make, why, func(g *collective.Group, lost *collective.RankError) {
		assert.Equal(t, 1, lost.Rank)
		assert.Equal(t, "cancelled", lost.Phase)
		assert.ErrorContains(t, lost, why.Error())
	})
}

// testLateReceiver is testSendCancelled, but the time for the Send is up. Both ranks name
// the receiver.
func testLateReceiver(t *testing.T, make Maker) {
	endSend(t, make, context.DeadlineExceeded, func(g *collective.Group, lost *collective.RankError) {
		assert.Equal(t, 0, lost.Rank)
		assert.ErrorIs(t, lost, collective.ErrLate)
	})
}

// testLateEnd lets the time for the End of rank 0 pass while rank 1 has not called End. All
// ranks name rank 1.
func testLateEnd(t *testing.T, make Maker) {
	limited, pass := context.WithCancelCause(t.Context())
	Run(t, make(t, 3), func(ctx context.Context, g *collective.Group) {
		m, err := g.Messages(ctx)
		assert.NoError(t, err)
		switch g.Rank() {
		case 0:
			found, err := m.Next(ctx)
			assert.NoError(t, err)
			assert.Equal(t, collective.Message{From: 2, End: true}, found)
			assert.ErrorIs(t, m.End(limited), collective.ErrLate)
		case 1:
			for from := -1; err == nil && from != 0; {
				var found collective.Message
				found, err = m.Next(ctx)
				from = found.From
			}
			assert.NoError(t, err)
			pass(context.DeadlineExceeded)
			for g.Lost() == nil && ctx.Err() == nil {
				runtime.Gosched()
			}
		case 2:
			assert.ErrorIs(t, m.End(ctx), collective.ErrLate)
		}
		var lost *collective.RankError
		if assert.ErrorAs(t, g.Lost(), &lost, "rank %d", g.Rank()) {
			assert.Equal(t, 1, lost.Rank)
		}
	})
}

// endSend ends the context of a Send with a cause, once its receiver has seen the header.
func endSend(t *testing.T, make_ Maker, cause error, check func(g *collective.Group, lost *collective.RankError)) {
	ended := make(chan struct{})
	Run(t, make_(t, 2), func(ctx context.Context, g *collective.Group) {
		m, err := g.Messages(ctx)
		assert.NoError(t, err)
		if g.Rank() == 1 {
			defer close(ended)
			cancelled, cancel := context.WithCancelCause(ctx)
			s := make([]float32, 8<<20) // more than a socket holds
			var asked sync.WaitGroup
			asked.Go(func() {
				_, err := m.Next(ctx)
				assert.NoError(t, err)
				assert.NoError(t, m.Recv(ctx, collective.Of([]byte{0})))
				cancel(cause)
			})
			err = m.Send(cancelled, 0, 0, collective.Of(s))
			asked.Wait()
		} else {
			_, err = m.Next(ctx)
			assert.NoError(t, err)
			err = m.Send(ctx, 1, 0, collective.Of([]byte{1})) // the other may fail before this returns
			<-ended
			for err == nil {
				_, err = m.Next(ctx)
			}
		}
		var lost *collective.RankError
		if assert.ErrorAs(t, err, &lost, "rank %d", g.Rank()) {
			check(g, lost)
		}
	})
}

package collectivetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/ringtrain/ringtrain/collective"
)

// TestMessages is the conformance suite of Messages, for transports with Abilities.Next.
func TestMessages(t *testing.T, make Maker) {
	for name, test := range map[string]func(*testing.T, Maker){
		"order":               testMessageOrder,
		"any source":          testAnySource,
		"both directions":     testBothDirections,
		"long":                testLongMessages,
		"skipped":             testSkipped,
		"timeouts":            testNextTimeouts,
		"ended context":       testNextWithEndedContext,
		"calls before, after": testCallsAroundMessages,
		"end discards":        testEndDiscards,
		"end is reported":     testEndIsReported,
		"mistakes":            testMessageMistakes,
		"call here":           testCallDuringMessages,
		"call elsewhere":      testCallElsewhere,
		"aborts":              testAbortDuringNext,
		"leaves":              testLeavesDuringNext,
		"closes":              testCloseDuringNext,
		"cancelled":           testSendCancelled,
		"late":                testLateReceiver,
		"late end":            testLateEnd,
	} {
		t.Run(name, func(t *testing.T) { test(t, make) })
	}
}

// exchange runs fn on each rank between Messages and End.
func exchange(t testing.TB, groups []*collective.Group, fn func(ctx context.Context, g *collective.Group, m *collective.Messages)) {
	Run(t, groups, func(ctx context.Context, g *collective.Group) {
		m, err := g.Messages(ctx)
		if !assert.NoError(t, err) {
			return
		}
		fn(ctx, g, m)
		assert.NoError(t, m.End(ctx), "rank %d", g.Rank())
	})
}

// nextMessage is m.Next without the reports of ranks that have ended.
func nextMessage(ctx context.Context, m *collective.Messages) (collective.Message, error) {
	for {
		found, err := m.Next(ctx)
		if err != nil || !found.End {
			return found, err
		}
	}
}

// testMessageOrder makes two ranks send numbered messages of different types and lengths
// to a third.
func testMessageOrder(t *testing.T, make_ Maker) {
	const each = 60
	exchange(t, make_(t, 3), func(ctx context.Context, g *collective.Group, m *collective.Messages) {
		if g.Rank() != 0 {
			for i := range each {
				v := collective.Of(Operands[float64](g.Rank(), i*i))
				if i%2 == 1 {
					v = collective.Of(Operands[int32](g.Rank(), i*i))
				}
				assert.NoError(t, m.Send(ctx, 0, uint32(i), v))
			}
			return
		}
		next := make([]int, g.Size())
		for range 2 * each {
			got, err := nextMessage(ctx, m)
			if !assert.NoError(t, err) {
				return
			}
			i := next[got.From]
			next[got.From]++
			want := collective.Message{From: got.From, Tag: uint32(i), DType: collective.Float64, Len: i * i}
			if i%2 == 1 {
				want.DType = collective.Int32
				s := make([]int32, i*i)
				assert.NoError(t, m.Recv(ctx, collective.Of(s)))
				checkSame(t, g, Operands[int32](got.From, i*i), s, fmt.Sprint("message ", i))
			} else {
				s := make([]float64, i*i)
				assert.NoError(t, m.Recv(ctx, collective.Of(s)))
				checkSame(t, g, Operands[float64](got.From, i*i), s, fmt.Sprint("message ", i))
			}
			assert.Equal(t, want, got)
		}
		assert.Equal(t, []int{0, each, each}, next)
	})
}

// testAnySource lets the ranks send to rank 0 in an order that only they know.
func testAnySource(t *testing.T, make_ Maker) {
	order := []int{3, 1, 2, 2, 3, 1}
	turns := make([]chan struct{}, 4)
	for r := range turns {
		turns[r] = make(chan struct{}, len(order))
	}
	exchange(t, make_(t, 4), func(ctx context.Context, g *collective.Group, m *collective.Messages) {
		if g.Rank() != 0 {
			for range 2 {
				<-turns[g.Rank()]
				assert.NoError(t, m.Send(ctx, 0, 0, collective.Of([]int64{int64(g.Rank())})))
			}
			return
		}
		for _, r := range order {
			turns[r] <- struct{}{}
			got, err := nextMessage(ctx, m)
			assert.NoError(t, err)
			assert.Equal(t, r, got.From)
			s := []int64{0}
			assert.NoError(t, m.Recv(ctx, collective.Of(s)))
			assert.EqualValues(t, r, s[0])
		}
	})
}

// testBothDirections makes every rank send more than transports buffer to every other,
// while another goroutine receives as much.
func testBothDirections(t *testing.T, make_ Maker) {
	const n, rounds = 1 << 17, 3 // of 8 bytes
	exchange(t, make_(t, 4), func(ctx context.Context, g *collective.Group, m *collective.Messages) {
		var sender sync.WaitGroup
		sender.Go(func() {
			mine := collective.Of(Operands[int64](g.Rank(), n))
			for range rounds {
				for i := 1; i < g.Size(); i++ {
					assert.NoError(t, m.Send(ctx, (g.Rank()+i)%g.Size(), 7, mine))
				}
			}
		})
		count := make([]int, g.Size())
		s := make([]int64, n)
		for range rounds * (g.Size() - 1) {
			got, err := nextMessage(ctx, m)
			if !assert.NoError(t, err) || !assert.NoError(t, m.Recv(ctx, collective.Of(s))) {
				break
			}
			checkSame(t, g, Operands[int64](got.From, n), s, "both directions")
			count[got.From]++
		}
		count[g.Rank()] = rounds
		assert.Equal(t, []int{rounds, rounds, rounds, rounds}, count)
		sender.Wait()
	})
}

// testLongMessages sends vectors of many segments, and one that is not a whole number of
// them.
func testLongMessages(t *testing.T, make_ Maker) {
	lengths := []int{0, 1, 262_144, 1_000_001}
	if Thorough() {
		lengths = append(lengths, 64<<20)
	}
	exchange(t, make_(t, 2), func(ctx context.Context, g *collective.Group, m *collective.Messages) {
		for i, n := range lengths {
			if g.Rank() == 1 {
				assert.NoError(t, m.Send(ctx, 0, uint32(i), collective.Of(Operands[uint8](1, n))))
				continue
			}
			got, err := nextMessage(ctx, m)
			assert.NoError(t, err)
			assert.Equal(t, collective.Message{From: 1, Tag: uint32(i), DType: collective.Uint8, Len: n}, got)
			s := make([]uint8, n)
			assert.NoError(t, m.Recv(ctx, collective.Of(s)))
			checkSame(t, g, Operands[uint8](1, n), s, fmt.Sprint(n))
		}
	})
}

// testSkipped receives every third payload. The others must not get in its way.
func testSkipped(t *testing.T, make_ Maker) {
	const count, n = 12, 300_001
	exchange(t, make_(t, 2), func(ctx context.Context, g *collective.Group, m *collective.Messages) {
		for i := range count {
			if g.Rank() == 1 {
				assert.NoError(t, m.Send(ctx, 0, uint32(i), collective.Of(Operands[uint8](i, n))))
				continue
			}
			got, err := nextMessage(ctx, m)
			assert.NoError(t, err)
			assert.EqualValues(t, i, got.Tag)
			if i%3 == 2 {
				s := make([]uint8, n)
				assert.NoError(t, m.Recv(ctx, collective.Of(s)))
				checkSame(t, g, Operands[uint8](i, n), s, fmt.Sprint(i))
			}
		}
	})
}

// testNextTimeouts waits for messages with a context that often ends first. No message
// is lost.
func testNextTimeouts(t *testing.T, make_ Maker) {
	const each, n = 40, 70_000 // 280 kB, more than one segment
	timeouts := make(chan struct{})
	exchange(t, make_(t, 3), func(ctx context.Context, g *collective.Group, m *collective.Messages) {
		if g.Rank() != 0 {
			for i := range each {
				if i%8 == 0 { // until a wait of rank 0 has timed out
					select {
					case <-timeouts:
					case <-ctx.Done():
					}
				}
				assert.NoError(t, m.Send(ctx, 0, uint32(i), collective.Of(Operands[float32](g.Rank()+i, n))))
			}
			return
		}
		next, s := make([]uint32, 3), make([]float32, n)
		for got := 0; got < 2*each; {
			brief, cancel := context.WithTimeout(ctx, 300*time.Microsecond)
			found, err := nextMessage(brief, m)
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				select {
				case timeouts <- struct{}{}:
				default:
				}
				continue
			}
			if !assert.NoError(t, err) {
				return
			}
			got++
			assert.Equal(t, next[found.From], found.Tag)
			next[found.From]++
			if found.Tag%2 == 0 {
				assert.NoError(t, m.Recv(ctx, collective.Of(s)))
				checkSame(t, g, Operands[float32](found.From+int(found.Tag), n), s, "after timeouts")
			}
		}
	})
}

// testNextWithEndedContext ends a context before a wait, and during several. Each of
// those ends soon: the transport does not wait until it looks again by itself.
func testNextWithEndedContext(t *testing.T, make Maker) {
	const soon = 50 * time.Millisecond
	why := errors.New("no more patience")
	waits := meeting(2)
	exchange(t, make(t, 2), func(ctx context.Context, g *collective.Group, m *collective.Messages) {
		if g.Rank() == 1 {
			waits()
			assert.NoError(t, m.Send(ctx, 0, 3, collective.Of([]byte(nil))))
			return
		}
		ended, end := context.WithCancelCause(ctx)
		end(why)
		_, err := m.Next(ended)
		assert.ErrorIs(t, err, why)
		least := time.Hour
		for range 5 {
			impatient, cancel := context.WithCancelCause(ctx)
			var cancelled time.Time
			timer := time.AfterFunc(20*time.Millisecond, func() {
				cancelled = time.Now()
				cancel(why)
			})
			_, err := m.Next(impatient)
			assert.ErrorIs(t, err, why)
			assert.ErrorContains(t, err, "no message on rank 0")
			least = min(least, time.Since(cancelled))
			timer.Stop()
		}
		assert.Less(t, least, soon)
		waits()
		got, err := m.Next(ctx)
		assert.NoError(t, err)
		assert.Equal(t, collective.Message{From: 1, Tag: 3, DType: collective.Uint8}, got)
	})
}

// testCallsAroundMessages makes calls, synchronous and not, before and between exchanges,
// which the ranks begin and end at different times.
func testCallsAroundMessages(t *testing.T, make_ Maker) {
	const size, rounds = 4, 4
	want := Reduced[float32](size, 20_000, 0, collective.Sum)
	Run(t, make_(t, size), func(ctx context.Context, g *collective.Group) {
		for round := range rounds {
			s := Operands[float32](g.Rank(), 20_000)
			if round%2 == 0 {
				assert.NoError(t, collective.AllReduce(ctx, g, s, collective.Sum))
				assert.NoError(t, collective.Broadcast(ctx, g, []int64{1}, round)) // over at different times
			} else {
				g.AllReduceAsync(ctx, collective.Of(s), collective.Sum)
			}
			m, err := g.Messages(ctx)
			if !assert.NoError(t, err) {
				return
			}
			checkSame(t, g, want, s, "before messages")
			to := (g.Rank() + round) % size
			if to != g.Rank() {
				var sender sync.WaitGroup
				sender.Go(func() { assert.NoError(t, m.Send(ctx, to, uint32(round), collective.Of(s))) })
				got, err := nextMessage(ctx, m)
				assert.NoError(t, err)
				assert.EqualValues(t, round, got.Tag)
				into := make([]float32, len(s))
				assert.NoError(t, m.Recv(ctx, collective.Of(into)))
				checkSame(t, g, want, into, "a sum")
				sender.Wait()
			}
			assert.NoError(t, m.End(ctx))
			assert.NoError(t, g.Barrier(ctx))
			assert.ErrorContains(t, m.Send(ctx, (g.Rank()+1)%size, 0, collective.Of(s)), "after End: call Group.Messages again")
		}
	})
}

// testEndDiscards ends while large messages are on their way in both directions.
func testEndDiscards(t *testing.T, make_ Maker) {
	groups := make_(t, 3)
	for range 2 {
		exchange(t, groups, func(ctx context.Context, g *collective.Group, m *collective.Messages) {
			if g.Rank() > 0 {
				assert.NoError(t, m.Send(ctx, 0, 1, collective.Of(make([]float32, 500_000))))
				assert.NoError(t, m.Send(ctx, 0, 2, collective.Of(make([]float32, 3))))
				return
			}
			_, err := nextMessage(ctx, m) // and leaves the payload
			assert.NoError(t, err)
		})
		Run(t, groups, func(ctx context.Context, g *collective.Group) { assert.NoError(t, g.Barrier(ctx)) })
	}
}

// testEndIsReported makes all ranks but one end. That one hears it, and can still send.
func testEndIsReported(t *testing.T, make_ Maker) {
	exchange(t, make_(t, 4), func(ctx context.Context, g *collective.Group, m *collective.Messages) {
		if g.Rank() != 3 {
			assert.NoError(t, m.Send(ctx, 3, 9, collective.Of([]byte{1})))
			return
		}
		ended, sent := make([]bool, 4), make([]bool, 4)
		for {
			got, err := m.Next(ctx)
			if err == io.EOF {
				break
			}
			if !assert.NoError(t, err) {
				return
			}
			if !got.End {
				sent[got.From] = true
				continue
			}
			assert.Equal(t, collective.Message{From: got.From, End: true}, got)
			assert.True(t, sent[got.From], "rank %d ended before its message", got.From)
			assert.False(t, ended[got.From])
			ended[got.From] = true
			assert.NoError(t, m.Send(ctx, got.From, 0, collective.Of(make([]float32, 200_000))), "it discards what arrives")
		}
		assert.Equal(t, []bool{true, true, true, false}, ended)
		_, err := m.Next(ctx)
		assert.Equal(t, io.EOF, err)
	})
}

// TestTurns makes ranks send faster than rank 0 receives. The transport buffers their
// messages, so that all are there when it begins. It must receive from each in turn.
func TestTurns(t *testing.T, make_ Maker) {
	const size, each = 5, 20
	sent := meeting(size)
	exchange(t, make_(t, size), func(ctx context.Context, g *collective.Group, m *collective.Messages) {
		if g.Rank() > 0 {
			for range each {
				assert.NoError(t, m.Send(ctx, 0, 0, collective.Of([]byte{1})))
			}
			sent()
			return
		}
		sent()
		count := make([]int, size)
		for most := 0; most < each; {
			got, err := nextMessage(ctx, m)
			if !assert.NoError(t, err) {
				return
			}
			count[got.From]++
			most = max(most, count[got.From])
		}
		for _, n := range count[1:] {
			assert.GreaterOrEqual(t, n, each/2, "%v", count)
		}
	})
}

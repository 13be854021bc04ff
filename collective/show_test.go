package collective

import (
	"context"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// A shower is a transport that records the calls of Show and AllReduce.
type shower struct {
	Transport
	calls []string
}

func (s *shower) Abilities() Abilities      { return Abilities{Reduce: s, Show: s.show} }
func (s *shower) show(*Operation)           { s.calls = append(s.calls, "show") }
func (s *shower) Exchange(*Operation) error { return ErrClosed }
func (s *shower) Barrier(*Operation) error  { return nil }
func (s *shower) Abort(*RankError)          {}
func (s *shower) Close() error              { return nil }
func (s *shower) AllReduce(o *Operation) error {
	s.calls = append(s.calls, "reduce")
	return ErrClosed
}

// An AllReduce that was shown is made, whatever happens before: only the
// transport can end the others' access to its memory.
func TestShownCallIsMade(t *testing.T) {
	for name, interrupt := range map[string]func(ctx context.Context, e *HostEngine) context.Context{
		"aborted": func(ctx context.Context, e *HostEngine) context.Context {
			e.Abort(&RankError{Rank: 1, Err: ErrLost})
			return ctx
		},
		"another context": func(ctx context.Context, _ *HostEngine) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return ctx
		},
		"closed": func(ctx context.Context, e *HostEngine) context.Context {
			e.active.closing.Store(true)
			return ctx
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := new(shower)
			e := OverTransport(View{Members: make([]Member, 2)}, s)
			v := Of(make([]int64, 10))
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			require.NoError(t, e.Start(&Operation{Header: Header{Call: Call{Kind: KindBarrier}}}))
			require.NoError(t, e.Wait(ctx)) // the first call shows nothing
			require.NoError(t, e.Start(&Operation{Header: Header{Call: Call{Kind: KindAllReduce}}, Dst: v, Src: v}))
			require.Equal(t, []string{"show"}, s.calls)
			require.Error(t, e.Wait(interrupt(ctx, e)))
			require.Equal(t, []string{"show", "reduce"}, s.calls)
			require.NoError(t, e.Close())
		})
	}
}

// A call may begin while Close runs. It then fails, and shows nothing.
func TestNothingIsShownWhileClosing(t *testing.T) {
	s := new(shower)
	e := OverTransport(View{Members: make([]Member, 2)}, s)
	v := Of(make([]int64, 10))
	require.NoError(t, e.Start(&Operation{Header: Header{Call: Call{Kind: KindBarrier}}}))
	require.NoError(t, e.Wait(t.Context()))
	closed := make(chan error)
	go func() { closed <- e.Close() }()
	for !e.active.closing.Load() {
		runtime.Gosched()
	}
	err := e.Start(&Operation{Header: Header{Call: Call{Kind: KindAllReduce}}, Dst: v, Src: v})
	require.NoError(t, <-closed)
	require.ErrorIs(t, err, ErrClosed)
	require.ErrorIs(t, e.Start(&Operation{Header: Header{Call: Call{Kind: KindAllReduce}}, Dst: v, Src: v}), ErrClosed)
	require.Empty(t, s.calls)
}

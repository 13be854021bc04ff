package collective

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Close may come when a call is just beginning, with a context that nothing has
// seen before. The call ends then, and nothing watches its context any more.
func TestWatchdogClosesWhileACallBegins(t *testing.T) {
	for range 200 {
		l := &watchdog{most: DefaultDeadline}
		ctx, cancel := context.WithCancelCause(context.Background())
		var all sync.WaitGroup
		all.Go(func() {
			for range 3 {
				limited, alone := l.begin(ctx)
				require.True(t, alone)
				if limited.Err() != nil {
					require.ErrorIs(t, context.Cause(limited), ErrClosed)
				}
				l.finish()
			}
		})
		all.Go(l.close)
		all.Wait()
		limited, alone := l.begin(context.WithoutCancel(ctx))
		require.True(t, alone)
		require.ErrorIs(t, context.Cause(limited), ErrClosed)
		require.Nil(t, l.forget)
		cancel(nil)
	}
}

type listKey struct{}

// A list is a Context of a type that == cannot compare.
type list struct {
	context.Context
	_ []int
}

// The end of a context ends a call, whatever its type, whether it is used for the first
// time or again, and in a value of its own or in another one.
func TestWatchdogKnowsContexts(t *testing.T) {
	for _, wrap := range []func(context.Context) context.Context{
		func(c context.Context) context.Context { return c },
		func(c context.Context) context.Context { return context.WithValue(c, listKey{}, 1) },
		func(c context.Context) context.Context { return list{Context: c} },
		func(c context.Context) context.Context { return &list{Context: c} },
	} {
		for _, reuse := range []bool{false, true} {
			l := &watchdog{most: DefaultDeadline}
			parent, cancel := context.WithCancelCause(t.Context())
			ctx := wrap(parent)
			for range 3 {
				_, alone := l.begin(ctx)
				require.True(t, alone)
				l.finish()
				if !reuse {
					ctx = wrap(parent)
				}
			}
			limited, alone := l.begin(ctx)
			require.True(t, alone)
			_, again := l.begin(ctx)
			require.False(t, again)
			cause := errors.New("stop")
			cancel(cause)
			<-limited.Done()
			require.ErrorIs(t, context.Cause(limited), cause)
			l.finish()
			l.close()
		}
	}
}

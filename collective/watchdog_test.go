package collective

import (
	"context"
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

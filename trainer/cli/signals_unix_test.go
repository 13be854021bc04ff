//go:build unix

package cli

import (
	"context"
	"errors"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

// After a signal, the error of a command that keeps data is shown, and that of one that only
// observes is not.
func TestErrorAfterSignal(t *testing.T) {
	lost := errors.New("lost")
	fail := func(ctx context.Context) error {
		require.NoError(t, syscall.Kill(syscall.Getpid(), syscall.SIGTERM))
		<-ctx.Done()
		return lost
	}
	require.Equal(t, &crew.EndError{Signal: syscall.SIGTERM, Err: lost}, serveUntilSignal(t.Context(), fail))
	require.Equal(t, &crew.EndError{Signal: syscall.SIGTERM}, untilSignal(t.Context(), fail))
}

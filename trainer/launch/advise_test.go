package launch

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// The error of a process that cannot be started names the limit that was reached.
func TestAdvise(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.EMFILE: "ulimit -n", syscall.ENFILE: "ulimit -n", syscall.EAGAIN: "ulimit -u", syscall.ENOMEM: "free some memory",
	} {
		err := advise(fmt.Errorf("connecting: %w", &os.PathError{Op: "fork/exec", Path: "x", Err: errno}))
		require.ErrorIs(t, err, errno)
		require.ErrorContains(t, err, want)
	}
	require.Equal(t, os.ErrNotExist, advise(os.ErrNotExist))
}

package errtext

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReason(t *testing.T) {
	_, err := os.Open(filepath.Join(t.TempDir(), "missing"))
	require.ErrorContains(t, err, "missing")
	require.NotContains(t, Reason(fmt.Errorf("wrapped: %w", err)).Error(), "missing")
	require.ErrorIs(t, Reason(err), fs.ErrNotExist)
	require.Equal(t, syscall.ECONNREFUSED, Reason(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}))
	for _, err := range []error{nil, fs.ErrExist, &fs.PathError{}, &net.OpError{Op: "dial"}} {
		require.Equal(t, err, Reason(err))
	}
}

//go:build unix

package launch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// inherit puts a copy of f where a worker finds its lifeline.
func inherit(t *testing.T, f *os.File) (fd int) {
	t.Helper()
	fd, err := syscall.Dup(int(f.Fd()))
	require.NoError(t, err)
	t.Setenv(EnvLifeline, strconv.Itoa(fd))
	return fd
}

func TestLifelineEndsWithTheLauncher(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	fd := inherit(t, r)
	ctx, stop, err := Lifeline(t.Context())
	require.NoError(t, err)
	defer stop()
	require.NotContains(t, os.Environ(), EnvLifeline+"="+strconv.Itoa(fd), "child processes must not find it")
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	require.NoError(t, err)
	require.NotZero(t, flags&unix.FD_CLOEXEC, "or inherit it")

	_, err = w.WriteString("ignored")
	require.NoError(t, err)
	require.NoError(t, ctx.Err())
	require.NoError(t, w.Close()) // as the kernel does if the launcher dies
	<-ctx.Done()
	require.ErrorIs(t, context.Cause(ctx), ErrLauncherGone)
}

func TestLifelineStop(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	fd := inherit(t, r)
	ctx, stop, err := Lifeline(t.Context())
	require.NoError(t, err)
	stop()
	stop()
	require.ErrorIs(t, context.Cause(ctx), context.Canceled)
	_, err = unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	require.ErrorIs(t, err, unix.EBADF, "the descriptor must be closed")
}

func TestLifelineFollowsItsParent(t *testing.T) {
	enough := errors.New("enough")
	t.Run("with a launcher", func(t *testing.T) {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		defer r.Close()
		defer w.Close()
		inherit(t, r)
		parent, cancel := context.WithCancelCause(t.Context())
		ctx, stop, err := Lifeline(parent)
		require.NoError(t, err)
		defer stop()
		cancel(enough)
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), enough)
	})
	t.Run("without", func(t *testing.T) {
		parent, cancel := context.WithCancelCause(t.Context())
		ctx, stop, err := Lifeline(parent)
		require.NoError(t, err)
		defer stop()
		require.NoError(t, ctx.Err())
		cancel(enough)
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), enough)
	})
}

func TestInvalidLifeline(t *testing.T) {
	r, w, err := os.Pipe()
	require.NoError(t, err)
	defer r.Close()
	defer w.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	require.NoError(t, err)
	defer file.Close()
	for _, value := range []string{"", "x", "-1", "0", "2", "99999999999999999999", "1000000",
		strconv.Itoa(int(file.Fd())), strconv.Itoa(int(w.Fd()))} {
		t.Run(value, func(t *testing.T) {
			t.Setenv(EnvLifeline, value)
			_, _, err := Lifeline(t.Context())
			require.ErrorContains(t, err, EnvLifeline)
			require.NotEmpty(t, err.Error())
			_, set := os.LookupEnv(EnvLifeline)
			require.False(t, set)
		})
	}
}

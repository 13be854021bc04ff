package shm

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestOffCore(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const away = 20 * time.Millisecond
	began := threadNow()
	_, _ = unix.Poll(nil, int(away/time.Millisecond)) // no core for this thread
	require.Greater(t, began.offCore(), away/2)

	other := threadNow()
	other.thread++
	require.Zero(t, other.offCore(), "the goroutine was on another thread")

	never, undisturbed := uint64(0), false
	for range 1000 { // until no other test has this core
		began := threadNow()
		spin(&never, 1, 2000)
		undisturbed = undisturbed || !disturbs(began.offCore(), time.Since(began.wall))
	}
	require.True(t, undisturbed)
}

func TestDisturbs(t *testing.T) {
	for _, c := range []struct {
		offCore, took time.Duration
		want          bool
	}{
		{20 * time.Microsecond, 25 * time.Microsecond, false}, // the Go runtime
		{600 * time.Microsecond, 2500 * time.Microsecond, false},
		{700 * time.Microsecond, 705 * time.Microsecond, true}, // a slice of the scheduler
		{3 * time.Millisecond, 5 * time.Millisecond, true},
	} {
		require.Equal(t, c.want, disturbs(c.offCore, c.took), "%+v", c)
	}
}

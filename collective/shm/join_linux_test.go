package shm_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/shm"
	"github.com/ringtrain/ringtrain/collective/tcp"
)

// shares reports whether a transport is one of this package.
func shares(t collective.Transport) bool {
	_, ok := t.(*shm.Transport)
	return ok
}

// If any rank cannot or may not share memory, all ranks of its host use TCP and
// log the reason, and no memory stays mapped.
func TestFallBack(t *testing.T) {
	full := shm.Reserving(func(int, int64) error { return unix.ENOSPC })
	for _, c := range []struct {
		name string
		odd  int // the rank with these options
		o    shm.Options
		says string
	}{
		{"no room", 0, full, "no space left on device"},
		{"the first may not", 0, shm.Options{Off: true}, "n/0: shared memory is turned off"},
		{"another cannot", 1, shm.Unable(unix.ENOSYS), "n/1: function not implemented"},
		{"another may not", 2, shm.Options{Off: true}, "n/2: shared memory is turned off"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var mu sync.Mutex
			var log bytes.Buffer
			before := mappings(t)
			views, transports, errs := join(t, 3, oneHost, func(rank int) shm.Options {
				o := shm.Options{}
				if rank == c.odd {
					o = c.o
				}
				o.Log, o.Arenas = slog.New(slog.NewTextHandler(&lockedWriter{&mu, &log}, nil)), new(shm.Arenas)
				return o
			})
			for r := range errs {
				require.NoError(t, errs[r])
				require.IsType(t, (*tcp.Transport)(nil), transports[r])
			}
			require.Equal(t, 3, strings.Count(log.String(), c.says), log.String())
			require.Equal(t, before, mappings(t))
			collectivetest.Run(t, collectivetest.Groups(t, views, transports, collective.Options{}), func(ctx context.Context, g *collective.Group) {
				s := []int64{1}
				assert.NoError(t, collective.AllReduce(ctx, g, s, collective.Sum))
				assert.Equal(t, []int64{3}, s)
			})
		})
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	to *bytes.Buffer
}

func (w *lockedWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(b)
}

// The limit on the size of files also limits shared memory. Join then falls back
// to TCP; no signal ends the process.
func TestLimitOfFileSize(t *testing.T) {
	limited := shm.Reserving(func(fd int, size int64) error {
		var old unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
			return err
		}
		low := unix.Rlimit{Cur: 1 << 16, Max: old.Max}
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &low); err != nil {
			return err
		}
		err := unix.Fallocate(fd, 0, 0, size)
		return errors.Join(err, unix.Setrlimit(unix.RLIMIT_FSIZE, &old))
	})
	_, transports := connect(t, 2, oneHost, limited)
	for _, tr := range transports {
		require.False(t, shares(tr))
		require.NoError(t, tr.Close())
	}
}

// With Must, Join fails if memory cannot be shared.
func TestMust(t *testing.T) {
	_, _, errs := join(t, 2, oneHost, func(rank int) shm.Options { return shm.Options{Must: true, Off: rank == 1} })
	for _, err := range errs {
		require.ErrorIs(t, err, shm.ErrNotShared)
		require.ErrorContains(t, err, "n/1: shared memory is turned off")
	}
	_, _, errs = join(t, 2, twoHosts, func(int) shm.Options { return shm.Options{Must: true} })
	for _, err := range errs {
		require.ErrorIs(t, err, shm.ErrNotShared)
		require.ErrorContains(t, err, "no other rank is known to be on the host")
	}
}

// Ranks whose host is unknown do not share memory.
func TestUnknownHosts(t *testing.T) {
	_, transports := connect(t, 2, func(int) collective.HostID { return 0 }, shm.Options{})
	for _, tr := range transports {
		require.False(t, shares(tr))
		require.NoError(t, tr.Close())
	}
}

// After Close, no descriptor and no mapping is left.
func TestCloseLeavesNothing(t *testing.T) {
	maps := mappings(t)
	for range 3 {
		views, transports := connect(t, 3, oneHost, shm.Options{Must: true})
		for _, tr := range transports {
			require.True(t, shares(tr))
		}
		require.Equal(t, maps+3, mappings(t))
		groups := collectivetest.Groups(t, views, transports, collective.Options{})
		collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
			assert.NoError(t, collective.AllReduce(ctx, g, make([]float32, 100_000), collective.Sum))
			assert.NoError(t, g.Barrier(ctx))
		})
		for _, g := range groups {
			require.NoError(t, g.Close())
		}
		require.Equal(t, maps, mappings(t))
		require.Zero(t, memoryFiles(t))
	}
}

// mappings returns how many pieces of shared memory this process has mapped.
func mappings(t *testing.T) int {
	text, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return strings.Count(string(text), "memfd:ringtrain")
}

// memoryFiles returns how many descriptors of shared memory this process has.
func memoryFiles(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	n := 0
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.Contains(to, "memfd:ringtrain") {
			n++
		}
	}
	return n
}

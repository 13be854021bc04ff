package launch

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// requireOnly fails if a directory contains anything but these names.
func requireOnly(t *testing.T, dir string, names ...string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, len(names), "%v", entries)
	for i, e := range entries {
		require.Equal(t, names[i], e.Name())
	}
}

// put writes the lock of another process.
func put(t *testing.T, dir string, h Holder) {
	h.Format, h.Taken = lockFormat, time.Date(2026, 11, 22, 9, 12, 44, 0, time.UTC)
	text, err := json.Marshal(h)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, LockName), text, 0o666))
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	_, _, err := HolderOf(dir)
	require.ErrorIs(t, err, fs.ErrNotExist)
	l, err := TakeLock(dir, LockOptions{Job: "one"})
	require.NoError(t, err)
	h, state, err := HolderOf(dir)
	require.NoError(t, err)
	require.Equal(t, "one", h.Job)
	require.Equal(t, Self(), h.Identity)
	require.Equal(t, Alive, state)
	_, err = TakeLock(dir, LockOptions{Job: "two", Force: true})
	var locked *LockedError
	require.ErrorAs(t, err, &locked, "the lock of a live process is never broken")
	require.Equal(t, h, locked.Holder)
	require.ErrorContains(t, err, dir+" is in use by job one (process ")
	requireOnly(t, dir, LockName)
	require.NoError(t, l.Unlock())
	requireOnly(t, dir)
	_, err = TakeLock(filepath.Join(dir, "none"), LockOptions{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Whether a lock can be taken over depends on what is known about its holder.
func TestLockOfAnother(t *testing.T) {
	gone := Self()
	gone.Start++ // this process has reused the pid
	elsewhere := Self()
	elsewhere.Host += "2"
	for _, c := range []struct {
		name   string
		holder *Holder // nil: the file is empty
		o      LockOptions
		want   string // "": the lock is taken over
	}{
		{"dead", &Holder{Identity: gone}, LockOptions{}, ""},
		{"dead, of the same job", &Holder{Identity: gone, Job: "j", Shared: true}, LockOptions{Job: "j"}, ""},
		{"elsewhere", &Holder{Identity: elsewhere, Job: "j"}, LockOptions{Job: "j"}, "since 2026-11-22 09:12:44); cannot tell from here whether it still runs"},
		{"elsewhere, forced", &Holder{Identity: elsewhere, Job: "j"}, LockOptions{Force: true}, ""},
		{"alive, forced", &Holder{Identity: Self(), Job: "j"}, LockOptions{Job: "j", Shared: true, Force: true}, "in use by job j"},
		{"alive, another job's", &Holder{Identity: Self(), Job: "k", Shared: true}, LockOptions{Job: "j", Shared: true}, "in use by job k"},
		{"alive, not shared now", &Holder{Identity: Self(), Job: "j", Shared: true}, LockOptions{Job: "j"}, "in use by job j"},
		{"nothing", nil, LockOptions{}, "may be in use: cannot understand its lock .ringtrain.lock"},
		{"nothing, forced", nil, LockOptions{Force: true}, ""},
	} {
		dir := t.TempDir()
		if c.holder == nil {
			require.NoError(t, os.WriteFile(filepath.Join(dir, LockName), nil, 0o666))
		} else {
			put(t, dir, *c.holder)
		}
		before, err := os.ReadFile(filepath.Join(dir, LockName))
		require.NoError(t, err)
		l, err := TakeLock(dir, c.o)
		if c.want != "" {
			require.ErrorContains(t, err, c.want, c.name)
			after, err := os.ReadFile(filepath.Join(dir, LockName))
			require.NoError(t, err)
			require.Equal(t, before, after)
			requireOnly(t, dir, LockName)
			continue
		}
		require.NoError(t, err, c.name)
		h, _, err := HolderOf(dir)
		require.NoError(t, err)
		require.Equal(t, Self(), h.Identity)
		require.NoError(t, l.Unlock())
		requireOnly(t, dir)
	}
}

// A lock that is not a regular file is rejected at once: reading a named pipe would
// block, and a dangling link would look like a lock just released.
func TestLockIsNotAFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("nowhere", filepath.Join(dir, LockName)); err != nil {
		t.Skip(err) // Windows allows it only to some users
	}
	_, err := TakeLock(dir, LockOptions{Force: true})
	require.ErrorContains(t, err, LockName+" is not a regular file; remove it")
	requireOnly(t, dir, LockName)
}

// The processes of one job share a directory, wherever they run. The process that took
// the lock releases it.
func TestSharedLock(t *testing.T) {
	dir, o := t.TempDir(), LockOptions{Job: "j", Shared: true}
	one, err := TakeLock(dir, o)
	require.NoError(t, err)
	two, err := TakeLock(dir, o)
	require.NoError(t, err)
	require.NoError(t, two.Unlock())
	requireOnly(t, dir, LockName)
	require.NoError(t, one.Unlock())
	requireOnly(t, dir)
}

// A broken lock is not released by its former holder.
func TestUnlockBrokenLock(t *testing.T) {
	dir := t.TempDir()
	l, err := TakeLock(dir, LockOptions{Job: "one"})
	require.NoError(t, err)
	put(t, dir, Holder{Job: "two"})
	require.NoError(t, l.Unlock())
	requireOnly(t, dir, LockName)
}

// If many processes find a dead lock at once, only one takes it over.
func TestOnlyOneTakesOver(t *testing.T) {
	gone := Self()
	gone.Start++
	for range 20 {
		dir := t.TempDir()
		put(t, dir, Holder{Identity: gone, Job: "old"})
		var all sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			all.Go(func() { _, errs[i] = TakeLock(dir, LockOptions{Job: "new"}) })
		}
		all.Wait()
		taken := 0
		for _, err := range errs {
			if err == nil {
				taken++
			} else if !errors.As(err, new(*LockedError)) {
				require.ErrorContains(t, err, "another process is taking over its lock")
			}
		}
		require.Equal(t, 1, taken)
		requireOnly(t, dir, LockName)
	}
}

// A process killed during a takeover blocks others only for a while.
func TestKilledTakeover(t *testing.T) {
	gone := Self()
	gone.Start++
	dir := t.TempDir()
	put(t, dir, Holder{Identity: gone})
	text, err := os.ReadFile(filepath.Join(dir, LockName))
	require.NoError(t, err)
	guard := guardOf(filepath.Join(dir, LockName), text)
	require.NoError(t, os.WriteFile(guard, nil, 0o666))
	_, err = TakeLock(dir, LockOptions{})
	require.ErrorContains(t, err, "another process is taking over its lock")
	old := time.Now().Add(-2 * takeoverTime)
	require.NoError(t, os.Chtimes(guard, old, old))
	_, err = TakeLock(dir, LockOptions{})
	require.NoError(t, err)
	requireOnly(t, dir, LockName)
}

// Nor does what it left let two processes take over one lock.
func TestKilledTakeoverRace(t *testing.T) {
	for range 100 {
		path := filepath.Join(t.TempDir(), LockName)
		require.NoError(t, os.WriteFile(path, []byte("dead"), 0o644))
		guard := guardOf(path, []byte("dead"))
		require.NoError(t, os.WriteFile(guard, []byte("killed"), 0o644))
		long := time.Now().Add(-2 * takeoverTime)
		require.NoError(t, os.Chtimes(guard, long, long))
		var taken atomic.Int32
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if ok, _ := takeOver(path, []byte("dead"), []byte("new")); ok {
					taken.Add(1)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 1, taken.Load())
		requireOnly(t, filepath.Dir(path), LockName)
	}
}

// The temporary file of a process that was killed while it took the lock does not stay.
func TestLockSweeps(t *testing.T) {
	dir := t.TempDir()
	temp, err := tempFor(filepath.Join(dir, LockName))
	require.NoError(t, err)
	old := time.Now().Add(-2 * time.Hour)
	require.NoError(t, os.Chtimes(temp, old, old))
	l, err := TakeLock(dir, LockOptions{})
	require.NoError(t, err)
	requireOnly(t, dir, LockName)
	require.NoError(t, l.Unlock())
}

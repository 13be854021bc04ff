package launch

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// requireOnly fails if a directory holds anything but these names.
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
	require.ErrorAs(t, err, &locked, "that of a live process is never broken")
	require.Equal(t, h, locked.Holder)
	require.ErrorContains(t, err, dir+" is in use by job one (process ")
	requireOnly(t, dir, LockName)
	require.NoError(t, l.Unlock())
	requireOnly(t, dir)
	_, err = TakeLock(filepath.Join(dir, "none"), LockOptions{})
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// Whose lock can be taken is a matter of what can be known about its holder.
func TestLockOfAnother(t *testing.T) {
	gone := Self()
	gone.Start++ // the number is ours now
	elsewhere := Self()
	elsewhere.Host += "2"
	for _, c := range []struct {
		name   string
		holder *Holder // nil: the file says nothing
		o      LockOptions
		want   string // "": it is taken
	}{
		{"dead", &Holder{Identity: gone}, LockOptions{}, ""},
		{"dead, of the same job", &Holder{Identity: gone, Job: "j", Shared: true}, LockOptions{Job: "j"}, ""},
		{"elsewhere", &Holder{Identity: elsewhere, Job: "j"}, LockOptions{Job: "j"}, "since 2026-11-22 09:12:44); whether it still runs cannot be seen from here"},
		{"elsewhere, forced", &Holder{Identity: elsewhere, Job: "j"}, LockOptions{Force: true}, ""},
		{"alive, forced", &Holder{Identity: Self(), Job: "j"}, LockOptions{Job: "j", Shared: true, Force: true}, "in use by job j"},
		{"alive, another job's", &Holder{Identity: Self(), Job: "k", Shared: true}, LockOptions{Job: "j", Shared: true}, "in use by job k"},
		{"alive, not shared now", &Holder{Identity: Self(), Job: "j", Shared: true}, LockOptions{Job: "j"}, "in use by job j"},
		{"nothing", nil, LockOptions{}, "may be in use: its lock .ringtrain.lock cannot be read"},
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

// A lock that is no regular file is refused at once: reading a named pipe would
// block, and a link that leads nowhere would look like a lock just given up.
func TestLockIsNoFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("nowhere", filepath.Join(dir, LockName)); err != nil {
		t.Skip(err) // Windows allows it to some users only
	}
	_, err := TakeLock(dir, LockOptions{Force: true})
	require.ErrorContains(t, err, LockName+" is not a regular file: remove it")
	requireOnly(t, dir, LockName)
}

// The processes of one job share a directory, wherever they are. The one that
// took it gives it up.
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

// A lock that was broken is not given up by the one that had it.
func TestUnlockWhatWasBroken(t *testing.T) {
	dir := t.TempDir()
	l, err := TakeLock(dir, LockOptions{Job: "one"})
	require.NoError(t, err)
	put(t, dir, Holder{Job: "two"})
	require.NoError(t, l.Unlock())
	requireOnly(t, dir, LockName)
}

// Of many who find a dead lock at once, one takes it.
func TestOneTakesOver(t *testing.T) {
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
				require.ErrorContains(t, err, "another process is taking it over just now")
			}
		}
		require.Equal(t, 1, taken)
		requireOnly(t, dir, LockName)
	}
}

// A process that was killed while it took a lock over keeps nobody out for long.
func TestTakeoverThatWasKilled(t *testing.T) {
	gone := Self()
	gone.Start++
	dir := t.TempDir()
	put(t, dir, Holder{Identity: gone})
	guard := filepath.Join(dir, LockName+".takeover")
	require.NoError(t, os.WriteFile(guard, nil, 0o666))
	_, err := TakeLock(dir, LockOptions{})
	require.ErrorContains(t, err, "just now")
	old := time.Now().Add(-2 * takeoverTime)
	require.NoError(t, os.Chtimes(guard, old, old))
	_, err = TakeLock(dir, LockOptions{})
	require.NoError(t, err)
	requireOnly(t, dir, LockName)
}

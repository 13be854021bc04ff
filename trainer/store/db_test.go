package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"
)

// What was acknowledged is there after the store has been opened again.
func TestReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "store")
	for n := range uint64(3) {
		db, err := Open(dir, Options{})
		require.NoError(t, err)
		if n > 0 {
			got, version, err := db.Get(t.Context(), "w")
			require.NoError(t, err)
			require.Equal(t, n, version)
			require.Equal(t, tensor(t, []float64{float64(n)}), got)
		}
		version, err := db.Set(t.Context(), "w", tensor(t, []float64{float64(n + 1)}), n)
		require.NoError(t, err)
		require.Equal(t, n+1, version)
		require.False(t, db.file.NoSync || db.file.NoGrowSync, "commits are synced")
		require.NoError(t, db.Close())
		require.NoError(t, db.Close(), "again")
		_, _, err = db.Get(t.Context(), "w")
		require.ErrorIs(t, err, ErrClosed)
		_, err = db.Set(t.Context(), "w", Raw(nil), Any)
		require.ErrorIs(t, err, ErrClosed)
	}
}

func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	opened(t, dir)
	_, err := Open(dir, Options{})
	require.EqualError(t, err, dir+" is in use by another process: only one can serve a store")

	_, err = Open(dir, Options{Sync: -1})
	require.ErrorContains(t, err, "must be at least 0, not -1ns")

	path := filepath.Join(dir, FileName)
	_, err = Open(path, Options{})
	require.ErrorContains(t, err, "not a directory")

	other := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(other, FileName), make([]byte, 1<<16), 0o600))
	_, err = Open(other, Options{})
	require.ErrorContains(t, err, filepath.Join(other, FileName)+": ")

	short := t.TempDir()
	whole, err := Open(short, Options{})
	require.NoError(t, err)
	_, err = whole.Set(t.Context(), "w", Raw(make([]byte, 1<<17)), 0)
	require.NoError(t, err)
	require.NoError(t, whole.Close())
	require.NoError(t, os.Truncate(filepath.Join(short, FileName), 1<<16))
	_, err = Open(short, Options{})
	require.ErrorContains(t, err, "the file has 65536 bytes, but the store needs ")

	foreign := t.TempDir()
	file, err := bbolt.Open(filepath.Join(foreign, FileName), 0o600, nil)
	require.NoError(t, err)
	require.NoError(t, file.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("x")); return err }))
	require.NoError(t, file.Close())
	_, err = Open(foreign, Options{})
	require.ErrorContains(t, err, `it contains "x", not a store of this version`)
}

// Whatever happens to the file, a value is one that was stored, or there is an error.
func TestDamagedFile(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, Options{})
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(1, 2))
	stored := map[string][]Value{}
	for i := range 60 {
		data := make([]float32, 1+random.IntN(4)*1000)
		for j := range data {
			data[j] = random.Float32()
		}
		key := fmt.Sprintf("key %d.%d", i%20, len(data))
		v := tensor(t, data)
		_, err := db.Set(t.Context(), key, v, Any)
		require.NoError(t, err)
		stored[key] = append(stored[key], v)
	}
	require.NoError(t, db.Close())
	whole, err := os.ReadFile(filepath.Join(dir, FileName))
	require.NoError(t, err)

	failures := 0
	for i := range 150 {
		text := slices.Clone(whole)
		at := random.IntN(len(text))
		switch i % 4 {
		case 0:
			text = text[:at]
		case 1:
			clear(text[at/4096*4096:][:4096])
		case 2:
			at %= 12 * 4096 // the pages that lead to the values
			fallthrough
		default:
			text[at] ^= byte(1 + random.IntN(255))
		}
		if err := readAll(t, text, stored); err != nil {
			failures++
			require.NotContains(t, err.Error(), "\n")
		}
	}
	require.Greater(t, failures, 20, "most truncations, for instance")
}

// readAll opens a file, reads all of it, and changes it. It returns the first error.
func readAll(t *testing.T, file []byte, stored map[string][]Value) error {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, FileName), file, 0o600))
	db, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	_, first := db.Keys(t.Context(), "")
	for key, values := range stored {
		got, _, err := db.Get(t.Context(), key)
		if err != nil {
			first = errors.Join(first, err)
			continue
		}
		require.True(t, slices.ContainsFunc(values, func(v Value) bool { return slices.Equal(v.Data, got.Data) }), key)
	}
	if first != nil {
		return errors.New("some values are damaged")
	}
	_, err = db.Set(t.Context(), "another", Raw(nil), Any)
	return err
}

// With a time between syncs, the updates of that time share one. All of them are on disk
// when they are acknowledged.
func TestSyncInterval(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		db, err := Open(dir, Options{Sync: time.Second})
		require.NoError(t, err)
		_, err = db.Set(t.Context(), "first", Raw(nil), 0)
		require.NoError(t, err)
		begin, commits := time.Now(), txid(t, db)
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				<-time.After(time.Duration(i) * 10 * time.Millisecond)
				_, err := db.Set(t.Context(), fmt.Sprint(i), Raw(nil), 0)
				require.NoError(t, err)
				_, _, err = db.Get(t.Context(), fmt.Sprint(i))
				require.NoError(t, err)
			})
		}
		all.Wait()
		require.Equal(t, time.Second, time.Since(begin))
		require.Equal(t, commits+1, txid(t, db))
		require.NoError(t, db.Close())
	})
}

// Without one, updates that come during a commit share the next.
func TestGroupCommit(t *testing.T) {
	db := opened(t, t.TempDir())
	const writers = 32
	tx, err := db.file.Begin(true) // holds commits up
	require.NoError(t, err)
	commits := tx.ID()
	var all sync.WaitGroup
	for i := range writers {
		all.Go(func() {
			_, err := db.Set(t.Context(), fmt.Sprint(i), Raw(nil), 0)
			require.NoError(t, err)
		})
	}
	require.NoError(t, tx.Rollback())
	all.Wait()
	require.Less(t, txid(t, db), commits+writers)
}

// txid returns the number of commits so far.
func txid(t *testing.T, db *DB) (id int) {
	require.NoError(t, db.file.View(func(tx *bbolt.Tx) error { id = tx.ID(); return nil }))
	return id
}

// After a failed commit nothing is acknowledged any more, and what was is still there.
func TestDiskFails(t *testing.T) {
	dir := t.TempDir()
	db, err := Open(dir, Options{})
	require.NoError(t, err)
	_, err = db.Set(t.Context(), "w", Raw([]byte("old")), 0)
	require.NoError(t, err)
	db.file.MaxSize = 1 << 16 // as if the disk were full
	_, err = db.Set(t.Context(), "big", Raw(make([]byte, 1<<20)), 0)
	require.ErrorContains(t, err, filepath.Join(dir, FileName)+": cannot write: ")
	db.file.MaxSize = 0
	_, err = db.Set(t.Context(), "w", Raw([]byte("new")), 1)
	require.ErrorContains(t, err, "until it is started again")
	got, version, err := db.Get(t.Context(), "w")
	require.NoError(t, err)
	require.EqualValues(t, 1, version)
	require.Equal(t, "old", string(got.Data))

	lines := make(chan string, 3)
	s := serving(t, db, ServerConfig{Log: func(line string) { lines <- line }})
	for range 2 {
		_, err = connected(t, s, nil).Set(t.Context(), "w", Raw([]byte("new")), 1)
		require.ErrorContains(t, err, "until it is started again")
	}
	require.NoError(t, s.Close())
	require.Len(t, lines, 1, "the server says it once")
	require.Contains(t, <-lines, "cannot write: ")
	require.ErrorContains(t, db.Close(), "cannot write: ")
}

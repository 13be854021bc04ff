package data

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// small returns a function that draws a small set quickly, and the set's sum.
func small() (func() *Set, string) {
	train, test := Generate(DigitsOptions{Train: 200, Test: 50})
	s := &Set{train, test}
	return func() *Set { return s }, s.Sum()
}

func TestDigitsAreGeneratedOnce(t *testing.T) {
	if raceDetector {
		t.Skip("the tests of small sets below cover the same code")
	}
	dir := t.TempDir()
	s, err := Digits(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, 20_000, s.Train.Rows)
	require.Equal(t, 4_000, s.Test.Rows)
	require.Equal(t, digitsSum, s.Sum())
	path := filepath.Join(dir, DigitsName, "train-images-idx3-ubyte")
	before, err := os.Stat(path)
	require.NoError(t, err)

	again, err := Digits(t.Context(), dir)
	require.NoError(t, err)
	require.Equal(t, digitsSum, again.Sum())
	require.Equal(t, 10, again.Test.Classes)
	after, err := os.Stat(path)
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after), "the second call only reads")
}

func TestConcurrentCallsGenerateOnce(t *testing.T) {
	draw, sum := small()
	dir := filepath.Join(t.TempDir(), "deep", "set")
	var drawn atomic.Int32
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			var s *Set
			s, errs[i] = cached(t.Context(), dir, sum, func() *Set { drawn.Add(1); return draw() })
			if errs[i] == nil && s.Sum() != sum {
				errs[i] = fmt.Errorf("got a different set")
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	require.EqualValues(t, 1, drawn.Load())
	entries, err := os.ReadDir(filepath.Dir(dir))
	require.NoError(t, err)
	require.Len(t, entries, 2, "only the set and its lock")
}

const childEnv = "RINGTRAIN_TEST_CACHE_DIR"

// TestCacheChild is the process that TestProcessesGenerateOnce starts.
func TestCacheChild(t *testing.T) {
	dir := os.Getenv(childEnv)
	if dir == "" {
		t.Skip("started by TestProcessesGenerateOnce")
	}
	draw, sum := small()
	_, err := cached(t.Context(), dir, sum, func() *Set { fmt.Println("drawn"); return draw() })
	require.NoError(t, err)
}

func TestProcessesGenerateOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	var wg sync.WaitGroup
	outputs, errs := make([][]byte, 3), make([]error, 3)
	for i := range outputs {
		wg.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCacheChild$")
			cmd.Env = append(os.Environ(), childEnv+"="+dir)
			outputs[i], errs[i] = cmd.CombinedOutput()
		})
	}
	wg.Wait()
	all := ""
	for i := range outputs {
		require.NoError(t, errs[i], string(outputs[i]))
		all += string(outputs[i])
	}
	require.Equal(t, 1, strings.Count(all, "drawn"), all)
}

func TestDamagedCacheIsRegenerated(t *testing.T) {
	draw, sum := small()
	for name, damage := range map[string]func(dir string) error{
		"missing file":        func(dir string) error { return os.Remove(filepath.Join(dir, "t10k-labels-idx1-ubyte")) },
		"truncated file":      func(dir string) error { return os.Truncate(filepath.Join(dir, "train-images-idx3-ubyte"), 1000) },
		"other content":       func(dir string) error { return writeMNIST(dir, "", tiny(3, 2, 2), tiny(2, 2, 2)) },
		"file in the way":     func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
		"leftover directory":  func(dir string) error { return os.MkdirAll(dir+".tmp-123/x", 0o755) },
		"leftover but no set": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.MkdirAll(dir+".tmp-123/x", 0o755)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "set")
			if name != "file in the way" {
				require.NoError(t, store(dir, draw(), true))
			}
			require.NoError(t, damage(dir))
			s, err := cached(t.Context(), dir, sum, draw)
			require.NoError(t, err)
			require.Equal(t, sum, s.Sum())
			_, err = openSum(dir, sum)
			require.NoError(t, err)
			if name != "leftover directory" { // the set was intact, so nothing was written
				entries, err := os.ReadDir(filepath.Dir(dir))
				require.NoError(t, err)
				require.Len(t, entries, 2, "the set and its lock")
			}
		})
	}
}

// Processes that no lock keeps apart leave each other's temporary directories alone, and one
// of their results stays.
func TestStoringWithoutALock(t *testing.T) {
	draw, sum := small()
	dir := filepath.Join(t.TempDir(), "set")
	fresh, stale := dir+asideMark+"1", dir+asideMark+"2"
	require.NoError(t, os.Mkdir(fresh, 0o755))
	require.NoError(t, os.Mkdir(stale, 0o755))
	before := time.Now().Add(-2 * asideAge)
	require.NoError(t, os.Chtimes(stale, before, before))
	require.NoError(t, store(dir, draw(), false))
	require.DirExists(t, fresh)
	require.NoDirExists(t, stale)

	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { errs[i] = store(dir, draw(), false) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	_, err := openSum(dir, sum)
	require.NoError(t, err)
	require.NoError(t, store(dir, draw(), true))
	require.NoDirExists(t, fresh, "with the lock it is a leftover")
}

func TestWrongSumIsAnError(t *testing.T) {
	draw, _ := small()
	dir := filepath.Join(t.TempDir(), "set")
	_, err := cached(t.Context(), dir, "0123", draw)
	require.ErrorContains(t, err, "instead of 0123")
	require.NoDirExists(t, dir)
}

func TestWaitingForTheLockEnds(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	alone, unlock, err := lock(t.Context(), dir+".lock", tryLock)
	require.NoError(t, err)
	require.True(t, alone)
	defer unlock()
	draw, sum := small()
	ctx, cancel := context.WithTimeout(t.Context(), 3*lockPoll)
	defer cancel()
	start := time.Now()
	_, err = cached(ctx, dir, sum, draw)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, dir+".lock")
	require.Less(t, time.Since(start), 10*time.Second)
}

func TestUnwritableCache(t *testing.T) {
	draw, sum := small()
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := cached(t.Context(), filepath.Join(file, "set"), sum, draw)
	require.ErrorContains(t, err, "data: cannot create the cache")
}

// If the context ends while a set is generated, only the lock remains.
func TestGeneratingEndsWithTheContext(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Digits(ctx, dir)
	require.ErrorIs(t, err, context.Canceled)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

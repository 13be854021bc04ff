package data

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// DigitsName is the default set's name in a Cache. The version goes up with every
	// change to what Generate draws, and digitsSum changes with it.
	DigitsName = "digits-v1"
	// digitsSum is the SHA-256 of the default set, see Set.Sum.
	digitsSum = "5ff57919a2feeb5d845a52db78ec1ad9277175e0f2c3866280fbc53b5f5fb8ac"
	// lockPoll is the interval at which a process retries a lock that another
	// process holds.
	lockPoll = 20 * time.Millisecond
)

// Digits returns the default set of [Generate]: 20000 and 4000 images of 28x28 pixels. The
// first call on a machine generates it (about a second) and stores it in cacheDir as IDX
// files; later calls read those. Concurrent calls are safe, also from several processes:
// one generates and the others wait for it. Digits compares the bytes with the set's known
// SHA-256, so every machine trains on the same data, and regenerates damaged files. It
// stops generating, or waiting for another process, when ctx ends.
func Digits(ctx context.Context, cacheDir string) (*Set, error) {
	return cached(ctx, filepath.Join(cacheDir, DigitsName), digitsSum, func() *Set {
		train, test := generate(ctx, DigitsOptions{})
		return &Set{Train: train, Test: test}
	})
}

// Sum returns the SHA-256, in hex, of the training pixels, training labels, test pixels and
// test labels, in this order.
func (s *Set) Sum() string {
	h := sha256.New()
	for _, m := range []*Images{s.Train, s.Test} {
		h.Write(m.Pixels)
		h.Write(m.Labels)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// cached reads the set at dir if it has the given sum. Otherwise it generates the set, in
// one process at a time.
func cached(ctx context.Context, dir, sum string, draw func() *Set) (*Set, error) {
	if s, err := openSum(dir, sum); err == nil {
		return s, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("data: cannot create the cache: %w", err)
	}
	alone, unlock, err := lock(ctx, dir+".lock", tryLock)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if s, err := openSum(dir, sum); err == nil { // generated while we waited
		return s, nil
	}
	s := draw()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("data: generating the set: %w", context.Cause(ctx))
	}
	if got := s.Sum(); got != sum {
		return nil, fmt.Errorf("data: this machine generates a set with SHA-256 %s instead of %s; please report this as a bug", got, sum)
	}
	return s, store(dir, s, alone)
}

// openSum reads a set and verifies its sum.
func openSum(dir, sum string) (*Set, error) {
	s, err := OpenMNIST(dir)
	if err != nil {
		return nil, err
	}
	if got := s.Sum(); got != sum {
		return nil, fmt.Errorf("%s: the content has SHA-256 %s instead of %s", dir, got, sum)
	}
	return s, nil
}

// store writes the set to dir atomically: it writes a temporary directory and renames it.
// Anything already at dir is known to be bad and is removed. If the caller is alone, it
// holds the lock. Otherwise other processes may store the same set at the same time.
func store(dir string, s *Set, alone bool) error {
	if err := sweep(dir, alone); err != nil {
		return fmt.Errorf("data: cannot remove leftovers from the cache: %w", err)
	}
	aside, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+asideMark)
	if err != nil {
		return fmt.Errorf("data: cannot write the cache: %w", err)
	}
	defer os.RemoveAll(aside)
	if err := os.Chmod(aside, 0o755); err != nil {
		return err
	}
	// Not compressed: every process of a job reads them, and would take .2 s to decompress.
	if err := writeMNIST(aside, "", s.Train, s.Test); err != nil {
		return fmt.Errorf("data: cannot write the cache: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil && !faster(err, alone) {
		return fmt.Errorf("data: cannot remove the damaged cache: %w", err)
	}
	if err := os.Rename(aside, dir); err != nil && !faster(err, alone) {
		return fmt.Errorf("data: cannot write the cache: %w", err)
	}
	return nil
}

// faster reports whether a change of the set's directory failed because another process,
// which no lock kept out, has put the same set there.
func faster(err error, alone bool) bool { return !alone && errors.Is(err, fs.ErrExist) }

// asideMark separates the name of a set from the random digits in the name of its
// temporary directory.
const asideMark = ".tmp-"

// asideAge is far longer than storing a set takes, and than clocks of machines differ.
const asideAge = time.Hour

// sweep removes the temporary directories of processes that were killed while storing dir.
// Unless the caller is alone, newer ones may be those of processes that are storing it now.
func sweep(dir string, alone bool) error {
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(dir)+asideMark) && (alone || old(e)) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(filepath.Dir(dir), e.Name())))
		}
	}
	return err
}

// old reports whether a temporary directory has not changed for asideAge.
func old(e fs.DirEntry) bool {
	info, err := e.Info()
	return err == nil && time.Since(info.ModTime()) > asideAge
}

// lock waits for exclusive use of a lock file and returns a function that releases it. The
// empty file stays: if it were removed, two processes could lock two different files of
// the same name. Where try returns errors.ErrUnsupported, as on some network file systems,
// lock succeeds at once, but the caller is not alone. The cache is still correct, because
// directories appear in it by rename: processes may do the same work, and one result stays.
func lock(ctx context.Context, path string, try func(*os.File) (bool, error)) (alone bool, unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return false, nil, fmt.Errorf("data: cannot lock the cache: %w", err)
	}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		got, err := try(f)
		if got || errors.Is(err, errors.ErrUnsupported) {
			return got, func() { _ = f.Close() }, nil
		}
		if err != nil {
			return false, nil, errors.Join(fmt.Errorf("data: cannot lock %s: %w", path, err), f.Close())
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return false, nil, fmt.Errorf("data: waiting for the process that holds %s: %w", path, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

package data

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	// DigitsName is the default set's in a Cache. The number goes up with every
	// change to what Generate draws, and digitsSum with it.
	DigitsName = "digits-v1"
	// digitsSum is the SHA-256 of the default set, see Set.Sum.
	digitsSum = "5ff57919a2feeb5d845a52db78ec1ad9277175e0f2c3866280fbc53b5f5fb8ac"
	// lockPoll is how often a process asks for a lock that another holds.
	lockPoll = 20 * time.Millisecond
)

// Digits returns the default set of [Generate]: 20000 and 4000 images of 28x28
// pixels. The first call on a machine draws it (about a second) and leaves it in
// cacheDir as IDX files; later calls read those. Processes may call it at the
// same time: one draws, the others wait for it. The bytes are compared with the set's known
// SHA-256, so every machine trains on the same ones; files that fail are made again.
// ctx ends the drawing, and the wait for another process.
func Digits(ctx context.Context, cacheDir string) (*Set, error) {
	return cached(ctx, filepath.Join(cacheDir, DigitsName), digitsSum, func() *Set {
		train, test := generate(ctx, DigitsOptions{})
		return &Set{Train: train, Test: test}
	})
}

// Sum returns the SHA-256, in hex, of training pixels, training labels, test
// pixels and test labels, in this order.
func (s *Set) Sum() string {
	h := sha256.New()
	for _, m := range []*Images{s.Train, s.Test} {
		h.Write(m.Pixels)
		h.Write(m.Labels)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// cached reads the set at dir if it has the given sum, and else has it made,
// by one process at a time.
func cached(ctx context.Context, dir, sum string, draw func() *Set) (*Set, error) {
	if s, err := openSum(dir, sum); err == nil {
		return s, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, fmt.Errorf("data: the cache cannot be made: %w", err)
	}
	unlock, err := lock(ctx, dir+".lock")
	if err != nil {
		return nil, err
	}
	defer unlock()
	if s, err := openSum(dir, sum); err == nil { // made while we waited
		return s, nil
	}
	s := draw()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("data: drawing the set: %w", context.Cause(ctx))
	}
	if got := s.Sum(); got != sum {
		return nil, fmt.Errorf("data: this machine draws a set with SHA-256 %s where all others draw %s; please report it", got, sum)
	}
	return s, store(dir, s)
}

// openSum reads a set and compares its sum.
func openSum(dir, sum string) (*Set, error) {
	s, err := OpenMNIST(dir)
	if err != nil {
		return nil, err
	}
	if got := s.Sum(); got != sum {
		return nil, fmt.Errorf("%s: its content has SHA-256 %s, expected %s", dir, got, sum)
	}
	return s, nil
}

// store makes dir hold the set, whole or not at all: it is written beside and
// renamed. What was at dir before is in the way and known to be bad. The caller
// has the lock, so what lies beside is of processes that were killed.
func store(dir string, s *Set) error {
	if err := sweep(dir); err != nil {
		return fmt.Errorf("data: leftovers in the cache cannot be removed: %w", err)
	}
	aside, err := os.MkdirTemp(filepath.Dir(dir), filepath.Base(dir)+asideMark)
	if err != nil {
		return fmt.Errorf("data: the cache cannot be written: %w", err)
	}
	defer os.RemoveAll(aside)
	if err := os.Chmod(aside, 0o755); err != nil {
		return err
	}
	if err := WriteMNIST(aside, s.Train, s.Test); err != nil {
		return fmt.Errorf("data: the cache cannot be written: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("data: a damaged cache is in the way: %w", err)
	}
	if err := os.Rename(aside, dir); err != nil {
		return fmt.Errorf("data: the cache cannot be written: %w", err)
	}
	return nil
}

// asideMark is between the name of a set and the digits of one being written.
const asideMark = ".tmp-"

// sweep removes what processes left that were killed while they stored dir.
func sweep(dir string) error {
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(dir)+asideMark) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(filepath.Dir(dir), e.Name())))
		}
	}
	return err
}

// lock waits for the exclusive use of a lock file and returns what gives it
// back. The file stays, empty: removing it would let two processes lock two files of
// one name.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("data: the cache cannot be locked: %w", err)
	}
	tick := time.NewTicker(lockPoll)
	defer tick.Stop()
	for {
		got, err := tryLock(f)
		if got {
			return func() { _ = f.Close() }, nil
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("data: %s cannot be locked: %w", path, err), f.Close())
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("data: waiting for another process that holds %s: %w", path, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

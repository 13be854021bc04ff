package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/ringtrain/ringtrain/collective/errtext"
	"github.com/ringtrain/ringtrain/trainer/atomicfile"
)

// FileName is the name of the file in the directory of a DB.
const FileName = "store.db"

// lockTime is how long Open waits for a process that ends, and still has the file.
const lockTime = time.Second

// pageKeys is the maximum number of keys that one message lists.
const pageKeys = 4096

// Options configures a DB.
type Options struct {
	// Sync is the shortest time between two syncs. Updates wait for the next sync, which
	// is for all of them. With 0, a sync begins as soon as the last one is done.
	Sync time.Duration
}

// A DB is a Store in a directory. One process has it open at a time.
type DB struct {
	file *bbolt.DB
	path string
	sync time.Duration

	updates chan *update
	closing chan struct{}
	once    sync.Once
	work    sync.WaitGroup
	broken  error // why a commit failed; belongs to the goroutine that writes, and after it to Close
}

// Open opens the store in a directory, which it creates if necessary. The caller closes
// it.
func Open(dir string, o Options) (*DB, error) {
	path := filepath.Join(dir, FileName)
	if o.Sync < 0 {
		return nil, fmt.Errorf("the time between syncs must be at least 0, not %v", o.Sync)
	}
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	d := &DB{path: path, sync: o.Sync, updates: make(chan *update), closing: make(chan struct{})}
	err := intact(func() (err error) {
		if d.file, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockTime, FreelistType: bbolt.FreelistMapType}); err != nil {
			return err
		}
		return d.prepare()
	})
	if err == nil {
		err = atomicfile.SyncDir(dir)
	}
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, fmt.Errorf("%s is in use by another process: only one can serve a store", dir)
	case err != nil && d.file != nil:
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), d.file.Close())
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, errtext.Reason(err))
	}
	d.work.Go(d.write)
	return d, nil
}

// makeDir creates the directory, so that it survives a power cut.
func makeDir(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return atomicfile.SyncDir(filepath.Dir(filepath.Clean(dir)))
}

// bucket returns the name of the part of the file that has the entries.
func bucket() []byte { return []byte("ringtrain store 1") }

// prepare checks the file, and creates the bucket in a new one.
func (d *DB) prepare() error {
	return d.file.Update(func(tx *bbolt.Tx) error {
		info, err := os.Stat(d.path)
		if err != nil {
			return err
		}
		if info.Size() < tx.Size() {
			return fmt.Errorf("the file has %d bytes, but the store needs %d: part of it is missing", info.Size(), tx.Size())
		}
		if first, _ := tx.Cursor().First(); first != nil && !bytes.Equal(first, bucket()) {
			return fmt.Errorf("it contains %q, not a store of this version of ringtrain", first)
		}
		_, err = tx.CreateBucketIfNotExists(bucket())
		return err
	})
}

// Close ends the calls in progress and closes the file. Updates that have not been
// acknowledged may or may not be in it. Call it once no Server uses the DB. If the disk
// could not be written since Open, the error says so again.
func (d *DB) Close() (err error) {
	d.once.Do(func() {
		close(d.closing)
		d.work.Wait()
		err = errors.Join(d.broken, d.file.Close())
	})
	return err
}

// Get implements Store.
func (d *DB) Get(ctx context.Context, key string) (v Value, version uint64, err error) {
	if err := CheckKey(key); err != nil {
		return v, 0, err
	}
	err = d.view(ctx, func(b *bbolt.Bucket) error {
		e, err := read(b, key)
		switch {
		case err != nil:
			return err
		case e.version == 0:
			return fmt.Errorf("%w: %q", ErrNotFound, key)
		}
		e.value.Data = bytes.Clone(e.value.Data) // it is in the file, which changes
		v, version = e.value, e.version
		return nil
	})
	return v, version, err
}

// Keys implements Store.
func (d *DB) Keys(ctx context.Context, prefix string) ([]string, error) {
	return allKeys(func(after string) ([]string, error) { return d.page(ctx, prefix, after) })
}

// allKeys returns the keys of all pages.
func allKeys(page func(after string) ([]string, error)) (all []string, err error) {
	after := ""
	for {
		keys, err := page(after)
		if err != nil {
			return nil, err
		}
		all = append(all, keys...)
		if len(keys) < pageKeys {
			return all, nil
		}
		after = keys[len(keys)-1]
	}
}

// page returns at most pageKeys keys that begin with prefix and come after another.
func (d *DB) page(ctx context.Context, prefix, after string) (keys []string, err error) {
	err = d.view(ctx, func(b *bbolt.Bucket) error {
		c := b.Cursor()
		for k, _ := c.Seek([]byte(max(prefix, after))); bytes.HasPrefix(k, []byte(prefix)) && k != nil && len(keys) < pageKeys; k, _ = c.Next() {
			if string(k) != after {
				keys = append(keys, string(k))
			}
		}
		return nil
	})
	return keys, err
}

// view reads what is on disk.
func (d *DB) view(ctx context.Context, look func(*bbolt.Bucket) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := intact(func() error {
		return d.file.View(func(tx *bbolt.Tx) error { return look(tx.Bucket(bucket())) })
	})
	if errors.Is(err, berrors.ErrDatabaseNotOpen) {
		return ErrClosed
	}
	return err
}

// read returns the entry of a key, in the memory of the file. Its version is 0 if there
// is none.
func read(b *bbolt.Bucket, key string) (entry, error) {
	text := b.Get([]byte(key))
	if text == nil {
		return entry{}, nil
	}
	e, err := decodeEntry(text)
	if err != nil {
		return entry{}, fmt.Errorf("the value of %q is damaged: %v; restore %s from a copy", key, err, FileName)
	}
	return e, nil
}

// intact calls f, and returns an error if bbolt panics or faults, which it does if the
// pages that lead to the values are damaged.
func intact(f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%s is damaged: part of it is missing or overwritten (%v); restore it from a copy", FileName, r)
		}
	}()
	return f()
}

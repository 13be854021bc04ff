package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"github.com/ringtrain/ringtrain/collective/errtext"
)

// maxBatch is the maximum number of updates in one commit.
const maxBatch = 1024

// errUnwritable is part of the errors of all updates after a failed commit.
var errUnwritable = errors.New("cannot write")

// An update is a call of Set that waits for its commit.
type update struct {
	key     string
	value   Value
	version uint64 // which the key must have, or Any
	token   token
	done    chan<- outcome // takes one without blocking
}

// An outcome is the result of an update.
type outcome struct {
	version uint64
	err     error
}

// Set implements Store. Once the writer has the update, Set waits for its commit even if
// ctx ends.
func (d *DB) Set(ctx context.Context, key string, v Value, version uint64) (uint64, error) {
	return d.set(ctx, update{key: key, value: v, version: version})
}

// set passes an update to the writer and waits for its outcome.
func (d *DB) set(ctx context.Context, u update) (uint64, error) {
	if err := CheckKey(u.key); err != nil {
		return 0, err
	}
	if err := u.value.Check(); err != nil {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	done := make(chan outcome, 1)
	u.done = done
	select {
	case d.updates <- &u:
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-d.closing:
		return 0, ErrClosed
	}
	o := <-done
	return o.version, o.err
}

// write makes the commits, until Close.
func (d *DB) write() {
	var last time.Time // the last sync
	for {
		var batch []*update
		select {
		case u := <-d.updates:
			batch = d.collect(u, last.Add(d.sync))
		case <-d.closing:
			return
		}
		outcomes := make([]outcome, len(batch))
		if d.broken == nil {
			// After a sync has failed, what is in memory may differ from what is on disk, and
			// the next sync does not report it. So no update is accepted any more.
			if err := d.commit(batch, outcomes); err != nil {
				d.broken = fmt.Errorf("%s: %w: %w; the store takes no more updates until it is started again", d.path, errUnwritable, errtext.Reason(err))
			}
			last = time.Now()
		}
		for i, u := range batch {
			if d.broken != nil {
				outcomes[i] = outcome{err: d.broken}
			}
			u.done <- outcomes[i]
		}
	}
}

// collect returns the updates of the next commit: those that come until a moment, and
// those that wait then.
func (d *DB) collect(first *update, until time.Time) []*update {
	batch := []*update{first}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	for waiting := true; waiting && len(batch) < maxBatch; {
		select {
		case u := <-d.updates:
			batch = append(batch, u)
		case <-timer.C:
			waiting = false
		case <-d.closing:
			waiting = false
		}
	}
	for len(batch) < maxBatch {
		select {
		case u := <-d.updates:
			batch = append(batch, u)
		default:
			return batch
		}
	}
	return batch
}

// commit applies updates in order and syncs the file. An error means that none of them
// has an outcome.
func (d *DB) commit(batch []*update, outcomes []outcome) error {
	return intact(func() error {
		return d.file.Update(func(tx *bbolt.Tx) error {
			b := tx.Bucket(bucket())
			for i, u := range batch {
				before, err := read(b, u.key)
				if err != nil {
					outcomes[i] = outcome{err: err}
					continue
				}
				after, o := u.apply(before)
				if outcomes[i] = o; after.version == before.version {
					continue
				}
				if err := b.Put([]byte(u.key), after.encode()); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// apply returns the entry after an update, which is the same entry if the update is
// refused, or was made before.
func (u *update) apply(e entry) (entry, outcome) {
	last, known := e.last(u.token.session)
	switch {
	case known && last.token.call == u.token.call:
		return e, outcome{version: last.version}
	case known && last.token.call > u.token.call:
		return e, outcome{err: fmt.Errorf("%w: the client has updated %q again since", ErrRefused, u.key)}
	case u.version != Any && u.version != e.version:
		return e, outcome{err: &VersionError{Key: u.key, Want: u.version, Have: e.version}}
	}
	if e.version > 0 {
		if err := u.value.CheckUpdate(u.key, e.value); err != nil {
			return e, outcome{err: err}
		}
	}
	version := e.version + 1
	return entry{version: version, seen: e.remember(seen{u.token, version}), value: u.value}, outcome{version: version}
}

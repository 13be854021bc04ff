package keyed

import (
	"context"
	"slices"

	"github.com/ringtrain/ringtrain/trainer/store"
)

// A Store is a map from keys to values, some of which are trained. Keys, values, versions
// and errors are those of a store.Store, but values are in memory, not on disk.
// The methods are safe for concurrent use. If ctx ends a call, it may still take effect.
type Store interface {
	store.Store

	// Push updates values with the optimizer of the store, one gradient after another. It
	// returns when all have been applied. Each adds 1 to the version of its key. The
	// optimizer has moments and a count of steps for each key, which Set does not change.
	//
	// The error is store.ErrNotFound if there is no such key. It is store.ErrRefused if value
	// or gradient is not a float32 tensor, their shapes differ, or the gradient is not
	// finite. The gradients before the one that is wrong are applied; those after it may be.
	Push(ctx context.Context, gradients ...Gradient) error

	// Pull brings copies up to date and returns how many have changed. Only values that
	// have changed are transferred, and they reuse the memory of the copy. Pull is not a
	// snapshot: between two keys, others may push. After an error, each copy is whole,
	// and either old or new.
	Pull(ctx context.Context, copies []Copy) (changed int, err error)
}

// A Gradient is the mean gradient of a value, which has the same shape.
type Gradient struct {
	Key   string
	Value store.Value
}

// A Copy is the caller's copy of a value. Before its first Pull it has a key only.
type Copy struct {
	Key     string
	Version uint64 // 0: there is no value yet
	Value   store.Value
}

// set sets the copy to another value, in the same memory.
func (c *Copy) set(v store.Value, version uint64) {
	shape := append(c.Value.Shape[:0], v.Shape...)
	if v.Shape == nil {
		shape = nil // bytes have none
	}
	c.Value = store.Value{Type: v.Type, Shape: shape, Data: append(c.Value.Data[:0], v.Data...)}
	c.Version = version
}

// clone returns a value that shares no memory with v.
func clone(v store.Value) store.Value {
	return store.Value{Type: v.Type, Shape: slices.Clone(v.Shape), Data: slices.Clone(v.Data)}
}

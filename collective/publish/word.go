package publish

import (
	"sync/atomic"
	"unsafe"
)

// A Word is an [atomic.Uint64] with a store that does not wait.
type Word struct{ atomic.Uint64 }

// Publish stores value as [Store] does.
func (w *Word) Publish(value uint64) { Store((*uint64)(unsafe.Pointer(&w.Uint64)), value) }

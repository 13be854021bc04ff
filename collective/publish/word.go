package publish

import (
	"sync/atomic"
	"unsafe"
)

// A Word is an [atomic.Uint64] that one goroutine can also Publish.
type Word struct{ atomic.Uint64 }

// Publish is Store that does not wait, see [Store].
func (w *Word) Publish(value uint64) { Store((*uint64)(unsafe.Pointer(&w.Uint64)), value) }

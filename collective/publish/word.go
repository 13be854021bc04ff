package publish

import (
	"sync/atomic"
	"unsafe"
)

// A Word is an [atomic.Uint64] with a Store that does not wait.
type Word struct{ atomic.Uint64 }

// Publish is what the function [Store] does.
func (w *Word) Publish(value uint64) { Store((*uint64)(unsafe.Pointer(&w.Uint64)), value) }

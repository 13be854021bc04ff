package cpu

import (
	"syscall"
	"unsafe"
)

const (
	hugePage       = 2 << 20 // bytes, on amd64 and on arm64 with pages of 4 KB
	adviseHugePage = 14      // MADV_HUGEPAGE, which package syscall does not name on all processors
)

// preferHugePages asks the kernel to back large allocations with huge pages. A step touches
// tens of megabytes, more than the TLB covers with small pages. Without huge pages the step
// is only slower, so errors do not matter.
func preferHugePages(v []float32) {
	if 4*len(v) < 2*hugePage {
		return
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
	past := int(uintptr(unsafe.Pointer(unsafe.SliceData(b))) % hugePage)
	b = b[(hugePage-past)%hugePage:]
	_ = syscall.Madvise(b[:len(b)/hugePage*hugePage], adviseHugePage)
}

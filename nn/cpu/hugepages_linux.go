package cpu

import (
	"syscall"
	"unsafe"
)

const (
	hugePage       = 2 << 20 // bytes, on amd64 and on arm64 with pages of 4 KB
	adviseHugePage = 14      // MADV_HUGEPAGE, which package syscall does not name on all processors
)

// preferHugePages asks the kernel to back large memory with huge pages. A step goes through
// tens of megabytes, more than the processor has addresses of small pages for. Without huge
// pages it is only slower, so errors do not matter.
func preferHugePages(v []float32) {
	if 4*len(v) < 2*hugePage {
		return
	}
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
	past := int(uintptr(unsafe.Pointer(unsafe.SliceData(b))) % hugePage)
	b = b[(hugePage-past)%hugePage:]
	_ = syscall.Madvise(b[:len(b)/hugePage*hugePage], adviseHugePage)
}

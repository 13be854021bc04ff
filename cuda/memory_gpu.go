//go:build gpu && cgo && linux

package cuda

/*
#include "driver_gpu.h"
*/
import "C"

import (
	"unsafe"

	"gorgonia.org/cu"
)

func memAlloc(bytes int) (Ptr, error) {
	p, err := cu.MemAlloc(int64(bytes))
	return Ptr(p), failed("cuMemAlloc", err)
}

func memFree(p Ptr) error { return failed("cuMemFree", cu.MemFree(cu.DevicePtr(p))) }

func memInfo() (free, total uint64, err error) {
	f, t, err := cu.MemInfo()
	return uint64(f), uint64(t), failed("cuMemGetInfo", err)
}

func hostAlloc(bytes int, mapped bool) (unsafe.Pointer, error) {
	flags := C.uint(C.CU_MEMHOSTALLOC_PORTABLE)
	if mapped {
		flags |= C.CU_MEMHOSTALLOC_DEVICEMAP
	}
	var p unsafe.Pointer
	err := failure("cuMemHostAlloc", C.cuMemHostAlloc(&p, C.size_t(bytes), flags))
	return p, err
}

func hostFree(p unsafe.Pointer) error { return failed("cuMemFreeHost", cu.MemFreeHost(p)) }

func hostDevice(p unsafe.Pointer) (Ptr, error) {
	var device C.CUdeviceptr
	err := failure("cuMemHostGetDevicePointer", C.cuMemHostGetDevicePointer(&device, p, 0))
	return Ptr(device), err
}

func copyIn(dst Ptr, src unsafe.Pointer, bytes int, stream uintptr) error {
	return failed("cuMemcpyHtoDAsync", cu.MemcpyHtoDAsync(cu.DevicePtr(dst), src, int64(bytes), as[cu.Stream](stream)))
}

func copyOut(dst unsafe.Pointer, src Ptr, bytes int, stream uintptr) error {
	return failed("cuMemcpyDtoHAsync", cu.MemcpyDtoHAsync(dst, cu.DevicePtr(src), int64(bytes), as[cu.Stream](stream)))
}

func copyDevice(dst, src Ptr, bytes int, stream uintptr) error {
	return failed("cuMemcpyDtoDAsync", cu.MemcpyDtoDAsync(cu.DevicePtr(dst), cu.DevicePtr(src), int64(bytes), as[cu.Stream](stream)))
}

func fill8(p Ptr, v byte, bytes int, stream uintptr) error {
	return failed("cuMemsetD8Async", cu.MemsetD8Async(cu.DevicePtr(p), v, int64(bytes), as[cu.Stream](stream)))
}

func fill32(p Ptr, v uint32, count int, stream uintptr) error {
	return failed("cuMemsetD32Async", cu.MemsetD32Async(cu.DevicePtr(p), uint(v), int64(count), as[cu.Stream](stream)))
}

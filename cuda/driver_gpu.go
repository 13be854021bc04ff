//go:build gpu && cgo && linux

package cuda

/*
#cgo CFLAGS: -I/usr/local/cuda/include -I/opt/cuda/include
#cgo LDFLAGS: -L${SRCDIR}/lib -Wl,--as-needed -ldl
#include <stdlib.h>
#include "driver_gpu.h"
#include "trampolines_gpu.h"
*/
import "C"

import (
	"errors"
	"reflect"
	"unsafe"

	"golang.org/x/sys/unix"
	"gorgonia.org/cu"
)

// How this links: gorgonia.org/cu asks for -lcuda. If no driver is installed, the empty
// archive lib/libcuda.a satisfies that. If one is installed, --as-needed drops it,
// because the trampolines already define the symbols.

// supported returns nil, because this program can use a GPU if there is one.
func supported() error { return nil }

func threadID() int { return unix.Gettid() }

func openLibrary(path string) (uintptr, error) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var why [512]C.char
	h := C.rt_open(name, &why[0], C.size_t(len(why)))
	if h == nil {
		return 0, errors.New(C.GoString(&why[0]))
	}
	return uintptr(h), nil
}

func closeLibrary(library uintptr) { C.rt_close(pointer(library)) }

func libraryFile(library uintptr) string { return C.GoString(C.rt_file(pointer(library))) }

func librarySymbol(library uintptr, name string) uintptr {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	return uintptr(C.rt_symbol(pointer(library), text))
}

func bindDriver(library uintptr) (missing string) {
	name := C.rt_driver_bind(pointer(library))
	if name == nil {
		return ""
	}
	return C.GoString(name)
}

func unbindDriver() { C.rt_driver_unbind() }

func initDriver() error { return failure("cuInit", C.CUresult(C.rt_driver_init())) }

// failure returns the driver's result as an *Error, or nil for success.
func failure(call string, r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	e := &Error{Call: call, Name: "CUDA_ERROR", Code: int(r)}
	var name, text *C.char
	if C.cuGetErrorName(r, &name) == C.CUDA_SUCCESS && name != nil {
		e.Name = C.GoString(name)
	}
	if C.cuGetErrorString(r, &text) == C.CUDA_SUCCESS && text != nil {
		e.Text = C.GoString(text)
	}
	return e
}

// failed is failure for an error of gorgonia.org/cu. That is the driver's result in a
// different type, which some functions wrap.
func failed(call string, err error) error {
	for e := err; e != nil; {
		if v := reflect.ValueOf(e); v.Kind() == reflect.Int {
			return failure(call, C.CUresult(v.Int()))
		}
		cause, ok := e.(interface{ Cause() error })
		if !ok {
			return &Error{Call: call, Name: "CUDA_ERROR", Text: err.Error()}
		}
		e = cause.Cause()
	}
	return nil
}

func driverVersion() (int, error) {
	v := cu.Version()
	if v < 0 {
		return 0, &Error{Call: "cuDriverGetVersion", Name: "CUDA_ERROR", Text: "the driver does not report its version"}
	}
	return v, nil
}

func deviceCount() (int, error) {
	n, err := cu.NumDevices()
	return n, failed("cuDeviceGetCount", err)
}

func deviceInfo(index int) (Info, error) {
	info := Info{Index: index}
	dev, err := cu.GetDevice(index)
	if err != nil {
		return info, failed("cuDeviceGet", err)
	}
	if info.Name, err = dev.Name(); err != nil {
		return info, failed("cuDeviceGetName", err)
	}
	memory, err := dev.TotalMem()
	if err != nil {
		return info, failed("cuDeviceTotalMem", err)
	}
	info.Memory = uint64(memory)
	for _, field := range []struct {
		to        *int
		attribute cu.DeviceAttribute
	}{
		{&info.Major, cu.ComputeCapabilityMajor},
		{&info.Minor, cu.ComputeCapabilityMinor},
		{&info.Multiprocessors, cu.MultiprocessorCount},
		{&info.SharedMemory, cu.DeviceAttribute(C.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)},
		{&info.L2, cu.L2CacheSize},
	} {
		if *field.to, err = dev.Attribute(field.attribute); err != nil {
			return info, failed("cuDeviceGetAttribute", err)
		}
	}
	return info, nil
}

// retainPrimary makes the device's primary context current on this thread.
func retainPrimary(index int) error {
	dev, err := cu.GetDevice(index)
	if err != nil {
		return failed("cuDeviceGet", err)
	}
	primary, err := dev.RetainPrimaryCtx()
	if err != nil {
		return failed("cuDevicePrimaryCtxRetain", err)
	}
	if err := cu.SetCurrentContext(primary); err != nil {
		_ = dev.ReleasePrimaryCtx() // err is the cause
		return failed("cuCtxSetCurrent", err)
	}
	return nil
}

// releasePrimary undoes retainPrimary, on the same thread.
func releasePrimary(index int) error {
	dev, err := cu.GetDevice(index)
	if err != nil {
		return failed("cuDeviceGet", err)
	}
	return failed("cuDevicePrimaryCtxRelease", dev.ReleasePrimaryCtx())
}

// Each handle of gorgonia.org/cu is one unexported pointer, so it has the same bits as a
// uintptr. These lines do not compile if that changes.
var (
	_ [unsafe.Sizeof(uintptr(0)) - unsafe.Sizeof(cu.Stream{})]byte
	_ [unsafe.Sizeof(uintptr(0)) - unsafe.Sizeof(cu.Event{})]byte
	_ [unsafe.Sizeof(uintptr(0)) - unsafe.Sizeof(cu.Module{})]byte
	_ [unsafe.Sizeof(uintptr(0)) - unsafe.Sizeof(cu.Function{})]byte
	_ [unsafe.Sizeof(C.rt_command{}) - unsafe.Sizeof(command{})]byte
	_ [unsafe.Sizeof(command{}) - unsafe.Sizeof(C.rt_command{})]byte
)

// A handle is a type of gorgonia.org/cu, or of the driver, that is one pointer.
type handle interface {
	cu.Stream | cu.Event | cu.Module | cu.Function |
		C.CUstream | C.CUgraph | C.CUgraphExec | C.CUfunction
}

// as converts h to a handle with the same bits.
func as[T handle](h uintptr) T { return *(*T)(unsafe.Pointer(&h)) }

// bits converts a handle back, see as.
func bits[T handle](h T) uintptr { return *(*uintptr)(unsafe.Pointer(&h)) }

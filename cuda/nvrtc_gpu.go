//go:build gpu && cgo && linux

package cuda

/*
#include <stdlib.h>
#include "nvrtc_gpu.h"
*/
import "C"

import (
	"unsafe"
)

// pointer converts an address that dlopen or dlsym returned.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

func bindNVRTC(library *Shared) error {
	if missing := C.rt_nvrtc_bind(pointer(library.handle)); missing != nil {
		return library.lacks(C.GoString(missing))
	}
	return nil
}

// nvrtcFailure returns NVRTC's result as an *Error, or nil for success. NVRTC has only
// names for its results and no other text.
func nvrtcFailure(call string, r C.int) error {
	if r == 0 {
		return nil
	}
	return &Error{Call: call, Name: C.GoString(C.rt_nvrtc_error(r)), Code: int(r)}
}

// describeNVRTC returns the version of NVRTC and the architectures that it knows. It also
// loads the library of built-ins that compiling needs.
func describeNVRTC() (major, minor int, archs []int, err error) {
	var a, b C.int
	if err := nvrtcFailure("nvrtcVersion", C.rt_nvrtc_version(&a, &b)); err != nil {
		return 0, 0, nil, err
	}
	C.rt_nvrtc_open_builtins(a, b)
	var known [256]C.int
	n := C.rt_nvrtc_archs(&known[0], C.int(len(known)))
	for _, arch := range known[:n] {
		archs = append(archs, int(arch))
	}
	return int(a), int(b), archs, nil
}

func runNVRTC(s Source, options []string, cubin bool) (image []byte, log string, err error) {
	source, name := C.CString(s.Text), C.CString(s.Name)
	defer C.free(unsafe.Pointer(source))
	defer C.free(unsafe.Pointer(name))
	list := (*[1 << 16]*C.char)(C.calloc(C.size_t(len(options)), C.size_t(unsafe.Sizeof(source))))
	defer C.free(unsafe.Pointer(list))
	for i, option := range options {
		list[i] = C.CString(option)
		defer C.free(unsafe.Pointer(list[i]))
	}
	var made, said *C.char
	var size C.size_t
	wanted := C.int(0)
	if cubin {
		wanted = 1
	}
	r := C.rt_nvrtc_compile(source, name, C.int(len(options)), &list[0], wanted, &made, &size, &said)
	defer C.free(unsafe.Pointer(made))
	defer C.free(unsafe.Pointer(said))
	if said != nil {
		log = C.GoString(said)
	}
	if err := nvrtcFailure("nvrtcCompileProgram", r); err != nil {
		return nil, log, err
	}
	return C.GoBytes(unsafe.Pointer(made), C.int(size)), log, nil
}

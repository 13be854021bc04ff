//go:build gpu && cgo && linux

package cuda

/*
#include "cudnn_gpu.h"
*/
import "C"

import (
	"fmt"
	"unsafe"
)

func bindDNN(library *Shared) error {
	if missing := C.rt_dnn_bind(pointer(library.handle)); missing != nil {
		return library.lacks(C.GoString(missing))
	}
	if why := C.rt_dnn_open_parts(); why != nil {
		return fmt.Errorf("cuDNN (%s) cannot be used without its other libraries: %s; install all of cuDNN, or set %s to another file", library.Path, C.GoString(why), CuDNN.Variable)
	}
	return nil
}

func closeDNNParts() { C.rt_dnn_close_parts() }

func describeDNN() (version, cuda int) { return int(C.rt_dnn_version()), int(C.rt_dnn_cuda()) }

// dnnFailure returns cuDNN's status as an *Error, or nil for success.
func dnnFailure(call string, status C.int) error {
	if status == 0 {
		return nil
	}
	return &Error{Call: call, Name: C.GoString(C.rt_dnn_error(status)), Code: int(status)}
}

func dnnCreate() (uintptr, error) {
	var h unsafe.Pointer
	err := dnnFailure("cudnnCreate", C.rt_dnn_create(&h))
	return uintptr(h), err
}

func dnnDestroy(h uintptr) error { return dnnFailure("cudnnDestroy", C.rt_dnn_destroy(pointer(h))) }

// mostAlgorithms is no less than the number of algorithms of any pass.
const mostAlgorithms = 8

// convolved is a convolution in cuDNN's representation.
type convolved struct {
	convolution C.rt_conv
	made        C.rt_conv_made
	numbers     []C.int
}

func convolve(n *DNN, c Convolution) (convolved, error) {
	made := convolved{convolution: C.rt_conv{
		pass: C.int(c.Pass),
		rows: C.int(c.Rows), channels: C.int(c.Channels), height: C.int(c.Height), width: C.int(c.Width),
		filters: C.int(c.Filters), size: C.int(c.Size), stride: C.int(c.Stride), padding: C.int(c.Padding),
		out_height: C.int(c.outHeight()), out_width: C.int(c.outWidth()),
	}}
	if n.options.TF32 {
		made.convolution.tf32 = 1
	}
	found := make([]C.int, mostAlgorithms)
	count := C.int(len(found))
	status := C.rt_dnn_prepare(pointer(n.handle), &made.convolution, C.size_t(n.size), &made.made, &found[0], &count)
	made.numbers = found[:count]
	return made, dnnFailure("cudnnGetConvolutionAlgorithm_v7", status)
}

func (m *convolved) algorithms() []int {
	all := make([]int, len(m.numbers))
	for i, a := range m.numbers {
		all[i] = int(a)
	}
	return all
}

func (m *convolved) run(n *DNN, s Stream, algorithm int, o ConvOperands) error {
	at := C.rt_conv_at{x: C.uintptr_t(o.X), w: C.uintptr_t(o.W), y: C.uintptr_t(o.Y), bias: C.uintptr_t(o.Bias)}
	var call *C.char
	status := C.rt_dnn_run(pointer(n.handle), &m.convolution, &m.made, C.int(algorithm), &at,
		C.uintptr_t(n.workspace), C.size_t(n.size), C.uintptr_t(s.handle), &call)
	return dnnFailure(C.GoString(call), status)
}

func (m *convolved) release() { C.rt_dnn_release(&m.made) }

//go:build gpu && cgo && linux

package cuda

/*
#include "driver_gpu.h"
*/
import "C"

import (
	"strings"
	"unsafe"

	"gorgonia.org/cu"
)

func streamNew(priority int) (uintptr, error) {
	s, err := cu.MakeStreamWithPriority(priority, cu.NonBlocking)
	return bits(s), failed("cuStreamCreateWithPriority", err)
}

func streamDestroy(h uintptr) error {
	s := as[cu.Stream](h)
	return failed("cuStreamDestroy", s.Destroy())
}

func streamDone(h uintptr) (bool, error) {
	return done("cuStreamQuery", as[cu.Stream](h).Query())
}

// done distinguishes unfinished work from a failure.
func done(call string, err error) (bool, error) {
	err = failed(call, err)
	if e, ok := err.(*Error); ok && e.Code == C.CUDA_ERROR_NOT_READY {
		return false, nil
	}
	return err == nil, err
}

func streamSync(h uintptr) error {
	return failed("cuStreamSynchronize", as[cu.Stream](h).Synchronize())
}

func streamWait(h, event uintptr) error {
	return failed("cuStreamWaitEvent", as[cu.Stream](h).Wait(as[cu.Event](event), 0))
}

func eventNew(timing bool) (uintptr, error) {
	flags := cu.DisableTiming
	if timing {
		flags = cu.DefaultEvent
	}
	e, err := cu.MakeEvent(flags)
	return bits(e), failed("cuEventCreate", err)
}

func eventRecord(h, stream uintptr) error {
	return failed("cuEventRecord", as[cu.Event](h).Record(as[cu.Stream](stream)))
}

func eventDone(h uintptr) (bool, error) {
	return done("cuEventQuery", as[cu.Event](h).Query())
}

func eventSync(h uintptr) error {
	return failed("cuEventSynchronize", as[cu.Event](h).Synchronize())
}

func eventElapsed(start, end uintptr) (milliseconds float64, err error) {
	milliseconds, err = as[cu.Event](start).Elapsed(as[cu.Event](end))
	return milliseconds, failed("cuEventElapsedTime", err)
}

func eventDestroy(h uintptr) error {
	e := as[cu.Event](h)
	return failed("cuEventDestroy", cu.DestroyEvent(&e))
}

func captureBegin(stream uintptr) error {
	return failure("cuStreamBeginCapture", C.cuStreamBeginCapture(as[C.CUstream](stream), C.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
}

func captureEnd(stream uintptr) (graph uintptr, err error) {
	var g C.CUgraph
	err = failure("cuStreamEndCapture", C.cuStreamEndCapture(as[C.CUstream](stream), &g))
	return bits(g), err
}

func capturing(stream uintptr) (bool, error) {
	var status C.CUstreamCaptureStatus
	err := failure("cuStreamIsCapturing", C.cuStreamIsCapturing(as[C.CUstream](stream), &status))
	return status != C.CU_STREAM_CAPTURE_STATUS_NONE, err
}

func graphInstantiate(graph uintptr) (exec uintptr, nodes int, err error) {
	var count C.size_t
	if err := failure("cuGraphGetNodes", C.cuGraphGetNodes(as[C.CUgraph](graph), nil, &count)); err != nil {
		return 0, 0, err
	}
	var x C.CUgraphExec
	err = failure("cuGraphInstantiateWithFlags", C.cuGraphInstantiateWithFlags(&x, as[C.CUgraph](graph), 0))
	return bits(x), int(count), err
}

func graphUpload(exec, stream uintptr) error {
	return failure("cuGraphUpload", C.cuGraphUpload(as[C.CUgraphExec](exec), as[C.CUstream](stream)))
}

func graphLaunch(exec, stream uintptr) error {
	return failure("cuGraphLaunch", C.cuGraphLaunch(as[C.CUgraphExec](exec), as[C.CUstream](stream)))
}

func graphDestroy(graph uintptr) error {
	return failure("cuGraphDestroy", C.cuGraphDestroy(as[C.CUgraph](graph)))
}

func execDestroy(exec uintptr) error {
	return failure("cuGraphExecDestroy", C.cuGraphExecDestroy(as[C.CUgraphExec](exec)))
}

func moduleLoad(image []byte) (uintptr, error) {
	text := make([]byte, len(image)+1) // PTX must end with a zero byte; other images contain their length
	copy(text, image)
	var module C.CUmodule
	log := make([]byte, 8192)
	r := C.rt_load(&module, unsafe.Pointer(&text[0]), (*C.char)(unsafe.Pointer(&log[0])), C.size_t(len(log)))
	err := failure("cuModuleLoadDataEx", r)
	if e, ok := err.(*Error); ok {
		if said := C.GoString((*C.char)(unsafe.Pointer(&log[0]))); said != "" {
			e.Text += ": " + strings.Join(strings.Fields(said), " ") // errors are one line
		}
	}
	return uintptr(unsafe.Pointer(module)), err
}

func moduleUnload(h uintptr) error {
	return failed("cuModuleUnload", as[cu.Module](h).Unload())
}

func moduleFunction(h uintptr, name string) (uintptr, error) {
	f, err := as[cu.Module](h).Function(name)
	return bits(f), failed("cuModuleGetFunction", err)
}

func functionAttribute(h uintptr, attribute int) (int, error) {
	v, err := as[cu.Function](h).Attribute(cu.FunctionAttribute(attribute))
	return v, failed("cuFuncGetAttribute", err)
}

// launch queues the batch with one cgo call. C keeps no pointer to it.
func launch(stream uintptr, b *Batch) (at int, err error) {
	var failedAt C.int
	r := C.rt_launch(as[C.CUstream](stream), (*C.rt_command)(unsafe.Pointer(unsafe.SliceData(b.commands))), C.int(len(b.commands)),
		(*C.uint32_t)(unsafe.SliceData(b.widths)), (*C.uint64_t)(unsafe.SliceData(b.words)), &failedAt)
	return int(failedAt), failure("cuLaunchKernel", r)
}

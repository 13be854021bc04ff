//go:build gpu && cgo && linux

package nccl

/*
#include "nccl_gpu.h"
*/
import "C"

import "unsafe"

// These lines do not compile if Go and C disagree about what they share.
var (
	_ [unsafe.Sizeof(C.rt_nccl_command{}) - unsafe.Sizeof(Command{})]byte
	_ [unsafe.Sizeof(Command{}) - unsafe.Sizeof(C.rt_nccl_command{})]byte
	_ [unsafe.Offsetof(C.rt_nccl_command{}.count) - unsafe.Offsetof(Command{}.Count)]byte
	_ [unsafe.Offsetof(Command{}.Count) - unsafe.Offsetof(C.rt_nccl_command{}.count)]byte
	_ [unsafe.Sizeof(C.rt_nccl{}) - unsafe.Sizeof([len(functions)]uintptr{})]byte
	_ [unsafe.Sizeof([len(functions)]uintptr{}) - unsafe.Sizeof(C.rt_nccl{})]byte
)

// pointer converts an address that NCCL or the driver returned.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }

func end(comm uintptr) C.rt_nccl_end { return C.rt_nccl_end(pointer(comm)) }

func bind(addresses [len(functions)]uintptr) {
	C.rt_nccl_bind((*C.uintptr_t)(unsafe.Pointer(&addresses[0])))
}

func getVersion() (Version, error) {
	var v C.int
	r := Result(C.rt_nccl_version(&v))
	return Version(v), Comm{}.failure("ncclGetVersion", r)
}

func errorString(r Result) string { return C.GoString(C.rt_nccl_error_string(C.int(r))) }

func lastError(comm uintptr) string {
	text := C.rt_nccl_last_error(end(comm))
	if text == nil {
		return ""
	}
	return C.GoString(text)
}

func getUniqueID(id *UniqueID) Result {
	return Result(C.rt_nccl_unique_id((*C.rt_nccl_id)(unsafe.Pointer(id))))
}

func initRank(size int, id *UniqueID, rank int) (comm uintptr, r Result) {
	var made C.rt_nccl_end
	r = Result(C.rt_nccl_init(&made, C.int(size), (*C.rt_nccl_id)(unsafe.Pointer(id)), C.int(rank)))
	return uintptr(unsafe.Pointer(made)), r
}

func split(comm uintptr, color, key int) (part uintptr, r Result) {
	var made C.rt_nccl_end
	r = Result(C.rt_nccl_split(end(comm), C.int(color), C.int(key), &made))
	return uintptr(unsafe.Pointer(made)), r
}

func finalize(comm uintptr) Result { return Result(C.rt_nccl_finalize(end(comm))) }
func destroy(comm uintptr) Result  { return Result(C.rt_nccl_destroy(end(comm))) }
func abort(comm uintptr) Result    { return Result(C.rt_nccl_abort(end(comm))) }

func asyncError(comm uintptr) (state, r Result) {
	var s C.int
	r = Result(C.rt_nccl_async_error(end(comm), &s))
	return Result(s), r
}

func count(comm uintptr) (int, Result) {
	var n C.int
	r := Result(C.rt_nccl_count(end(comm), &n))
	return int(n), r
}

func userRank(comm uintptr) (int, Result) {
	var n C.int
	r := Result(C.rt_nccl_user_rank(end(comm), &n))
	return int(n), r
}

func cuDevice(comm uintptr) (int, Result) {
	var n C.int
	r := Result(C.rt_nccl_device(end(comm), &n))
	return int(n), r
}

// run makes all calls in one cgo call. at is the index of the call that failed, or
// len(commands).
func run(comm, stream uintptr, commands []Command, group bool) (at int, r Result) {
	var failed, grouped C.int
	if group {
		grouped = 1
	}
	r = Result(C.rt_nccl_run(end(comm), pointer(stream),
		(*C.rt_nccl_command)(unsafe.Pointer(&commands[0])), C.int(len(commands)), grouped, &failed))
	return int(failed), r
}

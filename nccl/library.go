package nccl

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ringtrain/ringtrain/cuda"
)

// functions are what is called of NCCL, in the order of rt_nccl in nccl_gpu.h.
// Those that an Oldest library has must be there.
var functions = [...]struct {
	name     string
	optional bool
}{
	{"ncclGetVersion", false},
	{"ncclGetUniqueId", false},
	{"ncclGetErrorString", false},
	{"ncclCommInitRankConfig", false},
	{"ncclCommFinalize", false},
	{"ncclCommDestroy", false},
	{"ncclCommAbort", false},
	{"ncclCommGetAsyncError", false},
	{"ncclCommCount", false},
	{"ncclCommUserRank", false},
	{"ncclCommCuDevice", false},
	{"ncclAllReduce", false},
	{"ncclReduce", false},
	{"ncclBroadcast", false},
	{"ncclAllGather", false},
	{"ncclReduceScatter", false},
	{"ncclSend", false},
	{"ncclRecv", false},
	{"ncclGroupStart", false},
	{"ncclGroupEnd", false},
	{"ncclGetLastError", true},
	{"ncclCommSplit", true}, // 2.18.1
}

// loaded is the library of this process. A failure is tried again at the next
// call, because it costs little.
var loaded struct {
	sync.Mutex
	library *cuda.Shared
	version Version
	splits  bool
}

// Available is nil if NCCL can be used here, and otherwise an error with
// cuda.ErrUnavailable that says in one line what is missing and how to get it.
// The first call loads the driver and the library.
func Available() error {
	_, err := GetVersion()
	return err
}

// GetVersion is the version of the library. The error is that of Available.
func GetVersion() (Version, error) {
	loaded.Lock()
	defer loaded.Unlock()
	if loaded.library != nil {
		return loaded.version, nil
	}
	if err := cuda.Available(); err != nil {
		return 0, err
	}
	library, err := cuda.NCCL.Open()
	if err != nil {
		return 0, err
	}
	addresses, missing := resolve(library.Symbol)
	if err := usable(library.Path, missing, func() (Version, error) {
		bind(addresses)
		return getVersion()
	}); err != nil {
		return 0, err
	}
	loaded.version, err = getVersion()
	if err != nil {
		return 0, err
	}
	loaded.library, loaded.splits = library, addresses[len(addresses)-1] != 0
	return loaded.version, nil
}

// resolve finds the functions. Absent ones are 0; missing is the first that must
// be there and is not.
func resolve(symbol func(name string) (uintptr, error)) (addresses [len(functions)]uintptr, missing string) {
	for i, f := range functions {
		address, err := symbol(f.name)
		if err == nil {
			addresses[i] = address
		} else if !f.optional && missing == "" {
			missing = f.name
		}
	}
	return addresses, missing
}

// usable says what is wrong with a library. Its version is asked for only if the
// function for that is there.
func usable(path, missing string, version func() (Version, error)) error {
	if missing == functions[0].name {
		return fmt.Errorf("%w: %s has no function %s, so it is no NCCL: %s", cuda.ErrUnavailable, path, missing, cuda.NCCL.Get)
	}
	v, err := version()
	switch {
	case err != nil:
		return fmt.Errorf("%w: %s: %w", cuda.ErrUnavailable, path, err)
	case v < Oldest:
		return fmt.Errorf("%w: %s is NCCL %v, and %v or newer is needed: %s", cuda.ErrUnavailable, path, v, Oldest, cuda.NCCL.Get)
	case missing != "":
		return fmt.Errorf("%w: %s is NCCL %v but has no function %s, so it was built without: %s", cuda.ErrUnavailable, path, v, missing, cuda.NCCL.Get)
	}
	return nil
}

// ErrAbsent is what errors.Is finds where the library is too old for a function.
var ErrAbsent = errors.New("this version of NCCL does not have it")

// Splits reports whether Comm.Split is there: from 2.18.1.
func Splits() bool {
	loaded.Lock()
	defer loaded.Unlock()
	return loaded.splits
}

package nccl

import (
	"fmt"
	"sync"

	"github.com/ringtrain/ringtrain/cuda"
)

// functions are the functions of NCCL that we call, in the order of rt_nccl in nccl_gpu.h.
var functions = [...]string{
	"ncclGetVersion",
	"ncclGetUniqueId",
	"ncclGetErrorString",
	"ncclCommInitRankConfig",
	"ncclCommFinalize",
	"ncclCommDestroy",
	"ncclCommAbort",
	"ncclCommGetAsyncError",
	"ncclCommCount",
	"ncclCommUserRank",
	"ncclCommCuDevice",
	"ncclAllReduce",
	"ncclReduce",
	"ncclBroadcast",
	"ncclAllGather",
	"ncclReduceScatter",
	"ncclSend",
	"ncclRecv",
	"ncclGroupStart",
	"ncclGroupEnd",
	"ncclGetLastError",
	"ncclCommSplit",
}

// loaded is the library of this process. After a failure the next call tries again, which
// is cheap.
var loaded struct {
	sync.Mutex
	library *cuda.Shared
	version Version
}

// Available returns nil if NCCL can be used. Otherwise the error wraps cuda.ErrUnavailable
// and says in one line what is missing and how to get it. The first call loads the driver
// and the library.
func Available() error {
	_, err := GetVersion()
	return err
}

// GetVersion returns the version of the library. The error is that of Available.
func GetVersion() (Version, error) {
	loaded.Lock()
	defer loaded.Unlock()
	if loaded.library != nil {
		return loaded.version, nil
	}
	if err := cuda.Available(); err != nil {
		return 0, err
	}
	if err := open(); err != nil {
		return 0, err
	}
	return loaded.version, nil
}

// Inspect looks for NCCL, even if there is no driver or no GPU.
func Inspect() cuda.Found {
	loaded.Lock()
	defer loaded.Unlock()
	if loaded.library == nil {
		if err := open(); err != nil {
			return cuda.NewFound(cuda.NCCL, nil, "", err)
		}
	}
	return cuda.NewFound(cuda.NCCL, loaded.library, loaded.version.String(), nil)
}

// open loads the first usable NCCL. The caller holds the lock.
func open() error {
	library, err := cuda.NCCL.Open(func(s *cuda.Shared) error {
		addresses, missing := resolve(s.Symbol)
		v, err := usable(s, missing, func() (Version, error) {
			bind(addresses)
			return getVersion()
		})
		loaded.version = v
		return err
	})
	loaded.library = library
	return err
}

// resolve looks up the functions. missing names the first that is absent.
func resolve(symbol func(name string) (uintptr, error)) (addresses [len(functions)]uintptr, missing string) {
	for i, name := range functions {
		address, err := symbol(name)
		if err != nil && missing == "" {
			missing = name
		}
		addresses[i] = address
	}
	return addresses, missing
}

// usable returns the version of a library that can be used, and otherwise what is wrong with
// it. It calls version only if the library has the function for it.
func usable(s *cuda.Shared, missing string, version func() (Version, error)) (Version, error) {
	if missing == functions[0] {
		return 0, s.Refuse(fmt.Errorf("%s has no function %s, so it is not NCCL", s.Path, missing))
	}
	v, err := version()
	switch {
	case err != nil:
		err = fmt.Errorf("%s: %w", s.Path, err)
	case v < Oldest:
		err = fmt.Errorf("%s is NCCL %v, and %v or newer is needed", s.Path, v, Oldest)
	case missing != "":
		err = fmt.Errorf("%s is NCCL %v, but was built without the function %s", s.Path, v, missing)
	default:
		return v, nil
	}
	return 0, s.Refuse(err)
}

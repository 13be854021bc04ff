package cuda

import (
	"errors"
	"fmt"
	"sync"
)

// oldestDriver is the version of CUDA, as the driver counts, that the driver
// must support: cuGraphInstantiateWithFlags came with it.
const oldestDriver = 11040

// loaded is the driver of this process, which has one: the trampolines jump into
// it. It is loaded once; a failure is tried again at the next call, because it
// costs little.
var loaded struct {
	sync.Mutex
	library *Shared
	version int // 13000
}

// Available is nil if a GPU can be used, and otherwise an error with
// ErrUnavailable that says in one line what is missing and how to get it. The
// first call loads the driver and wakes the GPUs, which may take a second.
func Available() error {
	_, err := openDriver()
	return err
}

// Built is nil in a program that uses a GPU where there is one, and otherwise the
// error of Available. Unlike that it looks at no driver.
func Built() error { return supported() }

// openDriver loads the driver, once, and returns the number of devices.
func openDriver() (devices int, err error) {
	loaded.Lock()
	defer loaded.Unlock()
	if err := supported(); err != nil {
		return 0, err
	}
	if loaded.library == nil {
		library, err := Driver.open(0)
		if err != nil {
			return 0, err
		}
		if missing := bindDriver(library.handle); missing != "" {
			return 0, unavailablef("%s has no function %s: update the NVIDIA driver", library.Path, missing)
		}
		if err := initDriver(); err != nil {
			return 0, whyNot(err)
		}
		version, err := driverVersion()
		if err != nil {
			return 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		if version < oldestDriver {
			return 0, unavailablef("the driver supports CUDA %s, and %s is needed: update the NVIDIA driver", versionText(version), versionText(oldestDriver))
		}
		loaded.library, loaded.version = library, version
	}
	devices, err = deviceCount()
	if err == nil && devices == 0 {
		err = &Error{Call: "cuDeviceGetCount", Name: "CUDA_ERROR_NO_DEVICE"}
	}
	if err != nil {
		return 0, whyNot(err)
	}
	return devices, nil
}

// advice is what to do about errors that the driver's start may end with.
var advice = map[string]string{
	"CUDA_ERROR_NO_DEVICE":                      "the driver finds no GPU: see what nvidia-smi says, and CUDA_VISIBLE_DEVICES",
	"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH":         "the driver's library and the kernel's module differ: restart the machine, or the container",
	"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE": "a compatibility library of CUDA is in the way of the driver's: take it out of LD_LIBRARY_PATH",
	"CUDA_ERROR_INVALID_DEVICE":                 "see what nvidia-smi says, and CUDA_VISIBLE_DEVICES",
	"CUDA_ERROR_UNKNOWN":                        "see what nvidia-smi and dmesg say; the module nvidia_uvm may be missing",
	"CUDA_ERROR_SYSTEM_NOT_READY":               "see what nvidia-smi says; on machines with NVSwitch nvidia-fabricmanager must run",
	"CUDA_ERROR_STUB_LIBRARY":                   "that is the toolkit's stub of libcuda.so.1, not the driver's: take stubs out of LD_LIBRARY_PATH",
}

// whyNot makes of a failed start what Available returns.
func whyNot(err error) error {
	do := "see what nvidia-smi says"
	var e *Error
	if errors.As(err, &e) && advice[e.Name] != "" {
		do = advice[e.Name]
	}
	return fmt.Errorf("%w: %w; %s", ErrUnavailable, err, do)
}

// versionText is 13000 as 13.0.
func versionText(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

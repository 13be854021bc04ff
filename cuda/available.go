package cuda

import (
	"errors"
	"fmt"
	"sync"
)

// oldestDriver is the CUDA version that the driver must support at least, in its own
// numbering. That version introduced cuGraphInstantiateWithFlags.
const oldestDriver = 11040

// loaded is the driver of this process. There can be only one, because the trampolines
// jump into it. After a failure the next call tries again, which is cheap.
var loaded struct {
	sync.Mutex
	library *Shared
	version int // 13000 for CUDA 13.0
}

// Available returns nil if a GPU can be used. Otherwise the error wraps ErrUnavailable
// and says in one line what is missing and how to get it. The first call loads the
// driver and wakes the GPUs, which may take a second.
func Available() error {
	_, err := openDriver()
	return err
}

// Built returns nil if this program was built to use GPUs, and otherwise the same error
// as Available. It does not load the driver.
func Built() error { return supported() }

// openDriver loads the driver, once, and returns the number of devices.
func openDriver() (devices int, err error) {
	loaded.Lock()
	defer loaded.Unlock()
	if err := supported(); err != nil {
		return 0, err
	}
	if loaded.library == nil {
		library, err := Driver.open(0, startDriver)
		if err != nil {
			return 0, err
		}
		loaded.library = library
	}
	devices, err = deviceCount()
	if err == nil && devices == 0 {
		err = &Error{Call: "cuDeviceGetCount", Name: "CUDA_ERROR_NO_DEVICE"}
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnavailable, whyNot(err))
	}
	return devices, nil
}

// startDriver initializes a driver and sets its version. It refuses one that is too old or
// that cannot be initialized, such as a toolkit's stub.
func startDriver(library *Shared) error {
	if missing := bindDriver(library.handle); missing != "" {
		return fmt.Errorf("%s has no function %s: update the NVIDIA driver", library.Path, missing)
	}
	err := initDriver()
	if err != nil {
		err = whyNot(err)
	} else if loaded.version, err = driverVersion(); err == nil && loaded.version < oldestDriver {
		err = fmt.Errorf("the driver supports CUDA %s, and %s is needed: update the NVIDIA driver", versionText(loaded.version), versionText(oldestDriver))
	}
	if err != nil { // then the search closes the library
		unbindDriver()
		loaded.version = 0
	}
	return err
}

// advice says what to do if the driver's initialization returns an error.
var advice = map[string]string{
	"CUDA_ERROR_NO_DEVICE":                      "the driver finds no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES",
	"CUDA_ERROR_SYSTEM_DRIVER_MISMATCH":         "the driver's library and the kernel's module differ: restart the machine, or the container",
	"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE": "CUDA's compatibility library hides the driver's libcuda.so.1: remove it from LD_LIBRARY_PATH",
	"CUDA_ERROR_INVALID_DEVICE":                 "check nvidia-smi and CUDA_VISIBLE_DEVICES",
	"CUDA_ERROR_UNKNOWN":                        "check nvidia-smi and dmesg; the module nvidia_uvm may be missing",
	"CUDA_ERROR_SYSTEM_NOT_READY":               "check nvidia-smi; on machines with NVSwitch nvidia-fabricmanager must run",
	"CUDA_ERROR_STUB_LIBRARY":                   "this is the toolkit's stub of libcuda.so.1, not the driver's: remove stubs from LD_LIBRARY_PATH",
}

// whyNot adds what to do to the error of a failed initialization.
func whyNot(err error) error {
	do := "check nvidia-smi"
	var e *Error
	if errors.As(err, &e) && advice[e.Name] != "" {
		do = advice[e.Name]
	}
	return fmt.Errorf("%w; %s", err, do)
}

// versionText returns 13.0 for 13000.
func versionText(v int) string { return fmt.Sprintf("%d.%d", v/1000, v%1000/10) }

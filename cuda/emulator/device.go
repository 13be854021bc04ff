//go:build linux && (amd64 || arm64) && !static

package emulator

import (
	"fmt"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Success is CUDA_SUCCESS. All results have CUDA's values.
const Success = 0

// An Error is a failed call of the emulator's driver.
type Error struct {
	Call string
	Code int // CUresult
}

// Error returns the call and CUDA's error code.
func (e *Error) Error() string { return fmt.Sprintf("emulator: %s returns %d", e.Call, e.Code) }

// A Device runs kernels on an emulated device, for tests. Only one goroutine may use it at a
// time: the one that created it, or one that called Bind.
type Device struct {
	*Library
	context  uintptr
	module   uintptr
	function map[string]uintptr
}

// NewDevice makes the first device current on this thread and compiles source for it. env is the
// result of Build.
func NewDevice(env []string, source string) (*Device, error) {
	nvrtc, err := Open(env, "RINGTRAIN_NVRTC_LIB")
	if err != nil {
		return nil, err
	}
	image, _, err := nvrtc.Compile(source)
	if err != nil {
		return nil, err
	}
	return LoadDevice(env, image)
}

// LoadDevice is NewDevice for a compiled image. env may name NVIDIA's driver.
func LoadDevice(env []string, image []byte) (*Device, error) {
	driver, err := Open(env, "RINGTRAIN_CUDA_LIB")
	if err != nil {
		return nil, err
	}
	runtime.LockOSThread()
	d := &Device{Library: driver, function: map[string]uintptr{}}
	for _, err := range []error{
		d.check("cuInit", 0),
		d.check("cuDevicePrimaryCtxRetain", &d.context, 0),
		d.check("cuCtxSetCurrent", d.context),
		d.check("cuModuleLoadData", &d.module, &image[0]),
	} {
		if err != nil {
			d.Close()
			return nil, err
		}
	}
	return d, nil
}

// Bind makes the device current for the calling goroutine, and locks that to its thread until it
// calls the returned function.
func (d *Device) Bind() (release func()) {
	runtime.LockOSThread()
	d.Call("cuCtxSetCurrent", d.context)
	return func() {
		d.Call("cuCtxSetCurrent", nil)
		runtime.UnlockOSThread()
	}
}

// Close releases the device. Call it in the goroutine that created the Device. The device may
// have failed.
func (d *Device) Close() {
	defer runtime.UnlockOSThread()
	d.Call("cuModuleUnload", d.module)
	d.Call("cuCtxSetCurrent", nil)
	d.Call("cuDevicePrimaryCtxRelease_v2", 0)
}

func (d *Device) check(call string, args ...any) error {
	if code := d.Call(call, args...); code != Success {
		return &Error{call, code}
	}
	return nil
}

// Compile compiles CUDA source. It returns the image and the compiler's log, which is also part
// of the error if compiling fails. l is NVRTC, NVIDIA's or the emulator's. For a virtual
// architecture such as compute_70, the image is PTX.
func (l *Library) Compile(source string, options ...string) (image []byte, log string, err error) {
	l.openBuiltins()
	text := append([]byte(source), 0)
	var pins runtime.Pinner
	defer pins.Unpin()
	list := make([]unsafe.Pointer, len(options)+1)
	for i, o := range options {
		option := append([]byte(o), 0)
		pins.Pin(&option[0])
		list[i] = unsafe.Pointer(&option[0])
	}
	var program, size uintptr
	l.Call("nvrtcCreateProgram", &program, &text[0], nil, 0, nil, nil)
	defer l.Call("nvrtcDestroyProgram", &program)
	code := l.Call("nvrtcCompileProgram", program, len(options), &list[0])
	l.Call("nvrtcGetProgramLogSize", program, &size)
	messages := make([]byte, size+1)
	l.Call("nvrtcGetProgramLog", program, &messages[0])
	log = strings.TrimRight(string(messages), "\x00\n")
	if code != Success {
		return nil, log, fmt.Errorf("emulator: NVRTC returns %d:\n%s", code, log)
	}
	get := "nvrtcGetCUBIN"
	if slices.ContainsFunc(options, func(o string) bool { return strings.Contains(o, "=compute_") }) {
		get = "nvrtcGetPTX"
	}
	l.Call(get+"Size", program, &size)
	image = make([]byte, size)
	l.Call(get, program, &image[0])
	return image, log, nil
}

// openBuiltins opens the library that NVRTC opens by name. If there is none, NVRTC reports it.
func (l *Library) openBuiltins() {
	var major, minor int32
	l.Call("nvrtcVersion", &major, &minor)
	name := fmt.Sprintf("libnvrtc-builtins.so.%d.%d", major, minor)
	_, _ = purego.Dlopen(filepath.Join(filepath.Dir(l.path), name), purego.RTLD_NOW|purego.RTLD_LOCAL)
}

// Alloc returns device memory of this many bytes.
func (d *Device) Alloc(bytes int) (uintptr, error) {
	var at uintptr
	return at, d.check("cuMemAlloc_v2", &at, bytes)
}

// Upload copies a slice to new device memory. Its elements must have a fixed size. For an empty
// slice it returns 0.
func Upload[T any](d *Device, v []T) (uintptr, error) {
	if len(v) == 0 {
		return 0, nil
	}
	bytes := len(v) * int(unsafe.Sizeof(v[0]))
	at, err := d.Alloc(bytes)
	if err != nil {
		return 0, err
	}
	return at, d.check("cuMemcpyHtoD_v2", at, &v[0], bytes)
}

// Download waits for all work and copies device memory to v.
func Download[T any](d *Device, v []T, at uintptr) error {
	if len(v) == 0 {
		return d.Wait()
	}
	if err := d.Wait(); err != nil {
		return err
	}
	return d.check("cuMemcpyDtoH_v2", &v[0], at, len(v)*int(unsafe.Sizeof(v[0])))
}

// Wait waits for all work and returns the error of the context.
func (d *Device) Wait() error { return d.check("cuCtxSynchronize") }

// Launch launches a kernel in a stream, or in the legacy stream if that is 0. Arguments must have
// the layout of the kernel's parameters: uintptr for pointers, int32 for int, equal structs.
func (d *Device) Launch(stream uintptr, kernel string, grid, block [3]uint32, args ...any) error {
	f, err := d.find(kernel)
	if err != nil {
		return err
	}
	var pins runtime.Pinner
	defer pins.Unpin()
	params := make([]unsafe.Pointer, len(args)+1)
	for i, a := range args {
		value := reflect.New(reflect.TypeOf(a))
		value.Elem().Set(reflect.ValueOf(a))
		params[i] = value.UnsafePointer()
		pins.Pin(params[i])
	}
	return d.check("cuLaunchKernel", f, grid[0], grid[1], grid[2], block[0], block[1], block[2], 0, stream, &params[0], nil)
}

// find returns the kernel's function.
func (d *Device) find(kernel string) (uintptr, error) {
	f, ok := d.function[kernel]
	if ok {
		return f, nil
	}
	name := append([]byte(kernel), 0)
	if err := d.check("cuModuleGetFunction", &f, d.module, &name[0]); err != nil {
		return 0, fmt.Errorf("%w (%s)", err, kernel)
	}
	d.function[kernel] = f
	return f, nil
}

// Attribute returns an attribute of a kernel, by CUDA's number.
func (d *Device) Attribute(kernel string, attribute int) (int, error) {
	f, err := d.find(kernel)
	if err != nil {
		return 0, err
	}
	var v int32
	err = d.check("cuFuncGetAttribute", &v, attribute, f)
	return int(v), err
}

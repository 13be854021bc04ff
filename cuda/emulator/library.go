//go:build linux && (amd64 || arm64) && !static

package emulator

import (
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strings"

	"github.com/ebitengine/purego"
)

// A Library is one of the emulator's libraries in this process, called without cgo. It is for
// tests of kernels and of the emulator.
type Library struct {
	handle uintptr
	path   string
}

// Open loads the library that a variable names in env, the result of Build.
func Open(env []string, variable string) (*Library, error) {
	for _, setting := range env {
		if path, ok := strings.CutPrefix(setting, variable+"="); ok {
			handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
			if err != nil {
				return nil, fmt.Errorf("emulator: %w", err)
			}
			return &Library{handle, path}, nil
		}
	}
	return nil, fmt.Errorf("emulator: env has no variable %s", variable)
}

// Call calls a function and returns its int. Arguments are integers of any size, nil, or
// pointers, which C must not keep. Call panics if there is no such function.
func (l *Library) Call(function string, args ...any) int {
	symbol, err := purego.Dlsym(l.handle, function)
	if err != nil {
		panic(err)
	}
	var pins runtime.Pinner
	defer pins.Unpin()
	words := make([]uintptr, len(args))
	for i, a := range args {
		words[i] = word(&pins, a)
	}
	r, _, _ := purego.SyscallN(symbol, words...)
	return int(int32(r))
}

// word returns an argument in the form in which C gets it.
func word(pins *runtime.Pinner, a any) uintptr {
	v := reflect.ValueOf(a)
	switch {
	case a == nil:
		return 0
	case v.CanInt():
		return uintptr(v.Int())
	case v.CanUint():
		return uintptr(v.Uint())
	case v.Kind() == reflect.Float32:
		return uintptr(math.Float32bits(float32(v.Float())))
	case v.Kind() == reflect.Pointer:
		pins.Pin(a)
		return v.Pointer()
	case v.Kind() == reflect.UnsafePointer:
		return v.Pointer()
	}
	panic(fmt.Sprintf("emulator: cannot pass an argument of type %T to C", a))
}

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

// A Library is one of the stand-ins in this process, called without cgo: for
// tests of kernels and of the stand-ins themselves.
type Library struct {
	handle uintptr
	path   string
}

// Open loads the library that a variable of env names, as Build returns it.
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
	return nil, fmt.Errorf("emulator: no %s in the environment that was given", variable)
}

// Call calls a function that returns an int, and returns that. Arguments are
// integers of any size, pointers, which C must not keep, and nil. It panics if
// there is no such function.
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

// word is an argument as C gets it.
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
	panic(fmt.Sprintf("emulator: an argument of type %T", a))
}

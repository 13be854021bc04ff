package cuda

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Source is a CUDA C++ program for Compile.
type Source struct {
	Name    string // for messages: kernels.cu
	Text    string
	Options []string // of NVRTC, besides the architecture and --std=c++17
}

// A CompileError is what NVRTC says of a program that it refuses.
type CompileError struct {
	Name string
	Err  error
	Log  string // the compiler's messages, with line numbers
}

// Error is the name, the error and the log.
func (e *CompileError) Error() string {
	return fmt.Sprintf("compiling %s: %v\n%s", e.Name, e.Err, strings.TrimSpace(e.Log))
}

// Unwrap is the *Error of NVRTC.
func (e *CompileError) Unwrap() error { return e.Err }

// compiler is NVRTC in this process, loaded once.
var compiler struct {
	sync.Mutex
	library      *Shared
	major, minor int
	archs        []int // that it knows, 90; nil if it does not say
}

// openCompiler loads NVRTC. The caller holds the lock.
func openCompiler() error {
	if compiler.library != nil {
		return nil
	}
	library, err := NVRTC.Open()
	if err != nil {
		return err
	}
	if err := bindNVRTC(library); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	major, minor, archs, err := describeNVRTC()
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUnavailable, library.Path, err)
	}
	compiler.library, compiler.major, compiler.minor, compiler.archs = library, major, minor, archs
	return nil
}

// Compile makes an image of the source for an architecture, "sm_90", or takes it
// from the cache. It needs NVRTC, and no GPU. Of an architecture newer than NVRTC
// it makes PTX for the newest that it knows, which the driver compiles on. A
// program that NVRTC refuses is a *CompileError. If NVRTC is missing or does not
// work, the error has ErrUnavailable.
func Compile(c Cache, s Source, arch string) (image []byte, err error) {
	compiler.Lock() // one at a time: NVRTC uses one core, and there is one program
	defer compiler.Unlock()
	if err := openCompiler(); err != nil {
		return nil, err
	}
	target, err := targetFor(arch, compiler.archs)
	if err != nil {
		return nil, err
	}
	options := append([]string{"--gpu-architecture=" + target, "--std=c++17"}, s.Options...)
	// The path is in the key because a stand-in may call itself by any version.
	key := imageKey(append([]string{fmt.Sprintf("%d.%d", compiler.major, compiler.minor), compiler.library.Path, s.Name, s.Text}, options...)...)
	if image, ok := c.get(key); ok {
		return image, nil
	}
	image, log, err := runNVRTC(s, options, strings.HasPrefix(target, "sm_"))
	if err != nil {
		return nil, notCompiled(s, err, log)
	}
	_ = c.put(key, image) // the image is as good; the next run compiles again
	return image, nil
}

// nvrtcCompilation is NVRTC_ERROR_COMPILATION, which is the program's fault.
const nvrtcCompilation = 6

// notCompiled is a *CompileError if NVRTC refuses the program, and ErrUnavailable, in
// one line, if NVRTC itself does not work. The caller holds the compiler's lock.
func notCompiled(s Source, err error, log string) error {
	var failed *Error
	if errors.As(err, &failed) && failed.Code == nvrtcCompilation {
		return &CompileError{s.Name, err, log}
	}
	why := err.Error()
	if words := strings.Fields(log); len(words) > 0 {
		why += ": " + strings.Join(words, " ")
	}
	return unavailablef("NVRTC %d.%d (%s) does not work: %s; %s, or set %s to another file",
		compiler.major, compiler.minor, compiler.library.Path, strings.TrimSuffix(why, "."), NVRTC.Get, NVRTC.Variable)
}

// Compile makes an image of the source for the device, or takes it from the cache.
func (d *Device) Compile(c Cache, s Source) ([]byte, error) { return Compile(c, s, d.info.Arch()) }

// targetFor is arch if the compiler knows it, and the newest older one as a
// virtual architecture, "compute_90", if not.
func targetFor(arch string, known []int) (string, error) {
	number, ok := strings.CutPrefix(arch, "sm_")
	n, err := strconv.Atoi(number)
	if !ok || err != nil {
		return "", fmt.Errorf("cuda: %q is no architecture: want sm_ and a number, as sm_90", arch)
	}
	if len(known) == 0 || slices.Contains(known, n) {
		return arch, nil
	}
	best := 0
	for _, k := range known {
		if k < n {
			best = max(best, k)
		}
	}
	if best == 0 {
		return "", unavailablef("this NVRTC does not compile for %s any more, its oldest is sm_%d: use an older NVRTC (%s names the file)", arch, slices.Min(known), NVRTC.Variable)
	}
	return fmt.Sprintf("compute_%d", best), nil
}

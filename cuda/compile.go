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
	Name    string // for messages, such as kernels.cu
	Text    string
	Options []string // for NVRTC, in addition to the architecture and --std=c++17
}

// A CompileError says why NVRTC rejects a program.
type CompileError struct {
	Name string
	Err  error
	Log  string // the compiler's messages, with line numbers
}

// Error returns the name, the error and the log, on several lines.
func (e *CompileError) Error() string {
	return fmt.Sprintf("compiling %s: %v\n%s", e.Name, e.Err, strings.TrimSpace(e.Log))
}

// Unwrap returns NVRTC's *Error.
func (e *CompileError) Unwrap() error { return e.Err }

// compiler is NVRTC in this process, loaded once.
var compiler struct {
	sync.Mutex
	library      *Shared
	major, minor int
	archs        []int // supported architectures, such as 90; nil if unknown
}

// openCompiler loads NVRTC. The caller holds the lock.
func openCompiler() error {
	if compiler.library != nil {
		return nil
	}
	library, err := NVRTC.Open(func(s *Shared) (err error) {
		if err := bindNVRTC(s); err != nil {
			return err
		}
		if compiler.major, compiler.minor, compiler.archs, err = describeNVRTC(); err != nil {
			return s.Refuse(fmt.Errorf("%s: %w", s.Path, err))
		}
		return nil
	})
	compiler.library = library
	return err
}

// Compile compiles the source for an architecture such as "sm_90", or takes the image
// from the cache. It needs NVRTC but no GPU. If NVRTC does not know the architecture yet,
// the image is PTX for the newest one that it knows, and the driver compiles that. If
// NVRTC rejects the program, the error is a *CompileError. If NVRTC is missing or does
// not work, the error wraps ErrUnavailable.
func Compile(c Cache, s Source, arch string) (image []byte, err error) {
	compiler.Lock() // serialized; the kernels are a single program anyway
	defer compiler.Unlock()
	if err := openCompiler(); err != nil {
		return nil, err
	}
	target, err := targetFor(arch, compiler.archs)
	if err != nil {
		return nil, err
	}
	options := append([]string{"--gpu-architecture=" + target, "--std=c++17"}, s.Options...)
	// The key includes the file, because the emulator can report any version.
	key := imageKey(append([]string{fmt.Sprintf("%d.%d", compiler.major, compiler.minor), resolved(compiler.library.Path), s.Name, s.Text}, options...)...)
	if image, ok := c.get(key); ok {
		return image, nil
	}
	image, log, err := runNVRTC(s, options, strings.HasPrefix(target, "sm_"))
	if err != nil {
		return nil, notCompiled(s, err, log)
	}
	_ = c.put(key, image) // on failure the next run compiles again
	return image, nil
}

// nvrtcCompilation is NVRTC_ERROR_COMPILATION: the program has an error.
const nvrtcCompilation = 6

// notCompiled returns a *CompileError if NVRTC rejects the program. If NVRTC itself does
// not work, it returns one line that wraps ErrUnavailable. The caller holds the compiler's
// lock.
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

// Compile compiles the source for this device, or takes the image from the cache.
func (d *Device) Compile(c Cache, s Source) ([]byte, error) { return Compile(c, s, d.info.Arch()) }

// targetFor returns arch if the compiler knows it, and otherwise the newest older one as
// a virtual architecture, such as "compute_90".
func targetFor(arch string, known []int) (string, error) {
	number, ok := strings.CutPrefix(arch, "sm_")
	n, err := strconv.Atoi(number)
	if !ok || err != nil {
		return "", fmt.Errorf("cuda: invalid architecture %q: want sm_ and a number, such as sm_90", arch)
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
		return "", unavailablef("this NVRTC no longer compiles for %s, its oldest is sm_%d: set %s to the file of an older NVRTC", arch, slices.Min(known), NVRTC.Variable)
	}
	return fmt.Sprintf("compute_%d", best), nil
}

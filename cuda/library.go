package cuda

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Library is one of CUDA's libraries, which are found at run time.
type Library struct {
	Name     string   // as people say
	Variable string   // the environment variable that names its file
	Sonames  []string // newest version first
	Get      string   // how to get it
}

// The libraries. The driver comes with the kernel's module; the others come with
// a CUDA toolkit, and with PyTorch, whose copies are as good.
var (
	Driver = Library{
		Name: "driver", Variable: "RINGTRAIN_CUDA_LIB", Sonames: []string{"libcuda.so.1"},
		Get: "install the NVIDIA driver (in a container: run it with --gpus all)",
	}
	NVRTC = Library{
		Name: "NVRTC", Variable: "RINGTRAIN_NVRTC_LIB", Sonames: []string{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"},
		Get: "pip install nvidia-cuda-nvrtc-cu12, or install a CUDA toolkit",
	}
	CublasLt = Library{
		Name: "cuBLASLt", Variable: "RINGTRAIN_CUBLASLT_LIB", Sonames: []string{"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"},
		Get: "pip install nvidia-cublas-cu12, or install a CUDA toolkit",
	}
	NCCL = Library{
		Name: "NCCL", Variable: "RINGTRAIN_NCCL_LIB", Sonames: []string{"libnccl.so.2"},
		Get: "pip install nvidia-nccl-cu12, or install the package libnccl2 of NVIDIA's repository",
	}
)

// surroundings are what the search for a library looks at.
type surroundings struct {
	getenv func(string) string
	glob   func(pattern string) []string // sorted
	python string                        // the interpreter that PATH finds, or ""
	newest int                           // the driver's version of CUDA, 13000; 0 if unknown
}

func thisMachine(newest int) surroundings {
	glob := func(pattern string) []string {
		found, _ := filepath.Glob(pattern) // the patterns are well-formed
		return found
	}
	python, _ := exec.LookPath("python3") // without one there is one place less
	return surroundings{os.Getenv, glob, python, newest}
}

// candidates are the names to open, in order. What the variable names is the
// only one, so that a mistake in it is seen. Otherwise a plain soname, which the
// loader looks for in its own places, comes before files, and a newer version
// before an older one.
func (l Library) candidates(s surroundings) []string {
	if file := s.getenv(l.Variable); file != "" {
		return []string{file}
	}
	sonames := l.ordered(s.newest)
	names := slices.Clone(sonames)
	for _, soname := range sonames {
		for _, pattern := range directories(s) {
			found := s.glob(filepath.Join(pattern, soname))
			slices.Reverse(found) // cuda-13.0 before cuda-12.6
			for _, file := range found {
				if !slices.Contains(names, file) {
					names = append(names, file)
				}
			}
		}
	}
	return names
}

// ordered are the sonames, those last that are newer than the driver: it may not
// run what they make.
func (l Library) ordered(driver int) []string {
	sonames := slices.Clone(l.Sonames)
	if driver == 0 {
		return sonames
	}
	slices.SortStableFunc(sonames, func(a, b string) int {
		return boolCompare(major(a) > driver/1000, major(b) > driver/1000)
	})
	return sonames
}

// major is 13 of libnvrtc.so.13, and 11 of libnvrtc.so.11.2.
func major(soname string) int {
	_, version, _ := strings.Cut(soname, ".so.")
	version, _, _ = strings.Cut(version, ".")
	n, _ := strconv.Atoi(version) // 0, and old, without one
	return n
}

// boolCompare puts false before true.
func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// directories are patterns for where CUDA's libraries usually are.
func directories(s surroundings) []string {
	var dirs []string
	for _, variable := range []string{"CUDA_HOME", "CUDA_PATH"} {
		if root := s.getenv(variable); root != "" {
			dirs = append(dirs, root+"/lib64")
		}
	}
	if root := s.getenv("CONDA_PREFIX"); root != "" {
		dirs = append(dirs, root+"/lib")
	}
	const wheels = "/python3*/*-packages/nvidia/*/lib"
	if root := s.getenv("VIRTUAL_ENV"); root != "" {
		dirs = append(dirs, root+"/lib"+wheels)
	}
	if s.python != "" {
		dirs = append(dirs, filepath.Dir(filepath.Dir(s.python))+"/lib"+wheels)
	}
	if home := s.getenv("HOME"); home != "" {
		dirs = append(dirs, home+"/.local/lib"+wheels)
	}
	return append(dirs,
		"/usr/local/lib"+wheels, "/usr/lib"+wheels,
		"/usr/local/nvidia/lib64",
		"/usr/local/cuda/lib64", "/usr/local/cuda-1*/lib64", "/opt/cuda/lib64",
		"/usr/lib/*-linux-gnu", "/usr/lib64",
		"/usr/lib/wsl/lib",
	)
}

// A Shared is a library that was loaded. It stays loaded until the process ends.
type Shared struct {
	Library Library
	Path    string // the name that the loader took
	handle  uintptr
}

// Open loads the library, from the first place that has one that loads. The
// error has ErrUnavailable, and says what was tried and how to get the library.
func (l Library) Open() (*Shared, error) {
	loaded.Lock()
	newest := loaded.version
	loaded.Unlock()
	return l.open(newest)
}

func (l Library) open(newest int) (*Shared, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	var firsts []string
	for _, name := range l.candidates(thisMachine(newest)) {
		handle, err := openLibrary(name)
		if err == nil {
			return &Shared{l, name, handle}, nil
		}
		// The loader says of a soname only that there is none. Of a file that is
		// there it says what is wrong with it.
		if strings.Contains(name, "/") {
			firsts = append(firsts, err.Error())
		}
	}
	if file := os.Getenv(l.Variable); file != "" {
		return nil, unavailablef("%s cannot be loaded from %s, which %s names: %s", l.Name, file, l.Variable, strings.Join(firsts, "; "))
	}
	why := ""
	if len(firsts) > 0 {
		why = " that can be loaded (" + firsts[0] + ")"
	}
	return nil, unavailablef("there is no %s%s: %s, or set %s to the file", strings.Join(l.Sonames, " or "), why, l.Get, l.Variable)
}

// Symbol is the address of a function of the library.
func (s *Shared) Symbol(name string) (uintptr, error) {
	address := librarySymbol(s.handle, name)
	if address == 0 {
		return 0, fmt.Errorf("%s (%s) has no function %s: %w", s.Path, s.Library.Name, name, errNoSymbol)
	}
	return address, nil
}

// errNoSymbol says that a library is of a version that is not supported.
var errNoSymbol = errors.New("it is of a version that ringtrain does not know")

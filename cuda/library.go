package cuda

import (
	"cmp"
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
	CuDNN = Library{
		Name: "cuDNN", Variable: "RINGTRAIN_CUDNN_LIB", Sonames: []string{"libcudnn.so.9", "libcudnn.so.8"},
		Get: "pip install nvidia-cudnn-cu12, or install the package cudnn9-cuda-12 of NVIDIA's repository",
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

// A tier is places of one worth, among which the newest version wins.
type tier []string

// byLoader is the place where the loader looks by itself: LD_LIBRARY_PATH, what
// ldconfig knows, and the system's directories.
const byLoader = ""

// candidates are the names to open, in order. What the variable names is the
// only one, so that a mistake in it is seen. Otherwise a toolkit comes before
// Python's packages, which lack what their libraries open by name: then NVRTC and
// cuBLASLt are of one toolkit where there is one. In each tier a newer version comes
// before an older one; but what is newer than the driver, which may not run what it
// makes, comes behind all else.
func (l Library) candidates(s surroundings) []string {
	if file := s.getenv(l.Variable); file != "" {
		return []string{file}
	}
	var names []string
	for _, sonames := range l.byDriver(s.newest) {
		for _, places := range tiers(s) {
			for _, soname := range sonames {
				names = append(names, named(soname, places, s)...)
			}
		}
	}
	return unique(names)
}

// named are the names of a soname in the places of a tier.
func named(soname string, places tier, s surroundings) []string {
	var names []string
	for _, place := range places {
		if place == byLoader {
			names = append(names, soname)
			continue
		}
		found := s.glob(filepath.Join(place, soname))
		slices.SortFunc(found, func(a, b string) int { return compareNumbered(b, a) }) // cuda-12.10 before cuda-12.9
		names = append(names, found...)
	}
	return names
}

// unique leaves out what is there before.
func unique(names []string) []string {
	var first []string
	for _, name := range names {
		if !slices.Contains(first, name) {
			first = append(first, name)
		}
	}
	return first
}

// byDriver are the sonames that the driver can be new enough for, and the others.
func (l Library) byDriver(driver int) [2][]string {
	var parts [2][]string
	for _, soname := range l.Sonames {
		at := 0
		if driver > 0 && major(soname) > driver/1000 {
			at = 1
		}
		parts[at] = append(parts[at], soname)
	}
	return parts
}

// major is 13 of libnvrtc.so.13, and 11 of libnvrtc.so.11.2.
func major(soname string) int {
	_, version, _ := strings.Cut(soname, ".so.")
	version, _, _ = strings.Cut(version, ".")
	n, _ := strconv.Atoi(version) // 0, and old, without one
	return n
}

// compareNumbered compares texts, and the numbers in them as numbers.
func compareNumbered(a, b string) int {
	for a != "" && b != "" {
		m, n := digits(a), digits(b)
		if m > 0 && n > 0 {
			x, _ := strconv.ParseUint(a[:m], 10, 64) // of more digits all are equal
			y, _ := strconv.ParseUint(b[:n], 10, 64)
			if c := cmp.Compare(x, y); c != 0 {
				return c
			}
			a, b = a[m:], b[n:]
			continue
		}
		if c := cmp.Compare(a[0], b[0]); c != 0 {
			return c
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits is how many a text begins with.
func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

// tiers are the places where CUDA's libraries usually are, as patterns: the toolkit
// that the user names, toolkits and the system, and Python's packages.
func tiers(s surroundings) []tier {
	var chosen, python tier
	for _, variable := range []string{"CUDA_HOME", "CUDA_PATH"} {
		if root := s.getenv(variable); root != "" {
			chosen = append(chosen, root+"/lib64", root+"/lib")
		}
	}
	system := tier{
		byLoader,
		"/usr/local/nvidia/lib64",
		"/usr/local/cuda/lib64", "/usr/local/cuda-*/lib64", "/opt/cuda/lib64",
		"/usr/lib/*-linux-gnu", "/usr/lib64",
		"/usr/lib/wsl/lib",
	}
	const wheels = "/python3*/*-packages/nvidia/*/lib"
	if root := s.getenv("CONDA_PREFIX"); root != "" {
		python = append(python, root+"/lib")
	}
	if root := s.getenv("VIRTUAL_ENV"); root != "" {
		python = append(python, root+"/lib"+wheels)
	}
	if s.python != "" {
		python = append(python, filepath.Dir(filepath.Dir(s.python))+"/lib"+wheels)
	}
	if home := s.getenv("HOME"); home != "" {
		python = append(python, home+"/.local/lib"+wheels)
	}
	return []tier{chosen, system, append(python, "/usr/local/lib"+wheels, "/usr/lib"+wheels)}
}

// looked is where, for people.
const looked = "where the loader looks, in CUDA_HOME, in /usr/local/cuda*, in the system's directories and among Python's packages"

// A Shared is a library that was loaded. It stays loaded until the process ends.
type Shared struct {
	Library Library
	Path    string // the name that the loader took
	handle  uintptr
}

// Open loads the library, from the first place that has one that loads. The
// error has ErrUnavailable, and says what was tried and how to get the library. It
// also has ErrNotInstalled if no place has one and the variable is not set.
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
		why := strings.TrimPrefix(strings.Join(firsts, "; "), file+": ")
		if why == "" { // a name for the loader
			why = "the loader does not find it"
		}
		return nil, unavailablef("%s cannot be loaded from %s, which %s names: %s; correct the variable, or unset it", l.Name, file, l.Variable, why)
	}
	what, do := strings.Join(l.Sonames, " or "), fmt.Sprintf("%s, or set %s to the file", l.Get, l.Variable)
	if len(firsts) > 0 {
		return nil, unavailablef("there is no %s that can be loaded (%s) %s: %s", what, firsts[0], looked, do)
	}
	return nil, notInstalled{unavailablef("there is no %s %s: %s", what, looked, do)}
}

// Symbol is the address of a function of the library.
func (s *Shared) Symbol(name string) (uintptr, error) {
	address := librarySymbol(s.handle, name)
	if address == 0 {
		return 0, s.lacks(name)
	}
	return address, nil
}

// lacks says that a library is of a version that cannot be used.
func (s *Shared) lacks(function string) error {
	l := s.Library
	return fmt.Errorf("%s has no function %s, so it is no %s that can be used: %s, or set %s to another file", s.Path, function, l.Name, l.Get, l.Variable)
}

package cuda

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A Library is one of NVIDIA's libraries, which we find at run time.
type Library struct {
	Name     string   // for messages
	Variable string   // environment variable that names its file
	Sonames  []string // newest version first
	Get      string   // how to install it
}

// The libraries. The driver comes with the kernel module. The others come with a CUDA
// toolkit or with Python packages such as PyTorch's, which work equally well.
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

// surroundings is what the search for a library depends on.
type surroundings struct {
	getenv func(string) string
	glob   func(pattern string) []string // sorted
	python string                        // path of the python3 in PATH, or ""
	newest int                           // the driver's CUDA version, such as 13000; 0 if unknown
}

func thisMachine(newest int) surroundings {
	glob := func(pattern string) []string {
		found, _ := filepath.Glob(pattern) // the patterns are well-formed
		return found
	}
	python, _ := exec.LookPath("python3") // optional
	return surroundings{os.Getenv, glob, python, newest}
}

// A tier is a list of directories of equal rank, among which the newest version wins.
type tier []string

// byLoader is the loader's own search path: LD_LIBRARY_PATH, ldconfig's cache and the
// system's directories.
const byLoader = ""

// candidates returns the names to open, in order.
//
//   - If the variable is set, its file is the only candidate, so that a mistake in it is
//     reported.
//   - Toolkits come before Python packages, which lack libraries that NVRTC and others open
//     by name. So NVRTC and cuBLASLt come from the same toolkit if there is one.
//   - In each tier newer versions come first.
//   - Versions newer than the driver come last of all, because the driver may reject what
//     they compile.
func (l Library) candidates(s surroundings) []string {
	if file := s.getenv(l.Variable); file != "" {
		return []string{file}
	}
	var names []string
	for _, sonames := range l.byDriver(s.newest) {
		for _, dirs := range tiers(s) {
			for _, soname := range sonames {
				names = append(names, named(soname, dirs, s)...)
			}
		}
	}
	return unique(names)
}

// named returns the candidates for a soname in a tier.
func named(soname string, dirs tier, s surroundings) []string {
	var names []string
	for _, dir := range dirs {
		if dir == byLoader {
			names = append(names, soname)
			continue
		}
		found := s.glob(filepath.Join(dir, soname))
		slices.SortFunc(found, func(a, b string) int { return compareNumbered(b, a) }) // cuda-12.10 before cuda-12.9
		names = append(names, found...)
	}
	return names
}

// unique drops duplicates and keeps the order.
func unique(names []string) []string {
	var first []string
	for _, name := range names {
		if !slices.Contains(first, name) {
			first = append(first, name)
		}
	}
	return first
}

// byDriver splits the sonames into those that are not newer than the driver, and others.
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

// major returns 13 for libnvrtc.so.13 and 11 for libnvrtc.so.11.2.
func major(soname string) int {
	_, version, _ := strings.Cut(soname, ".so.")
	version, _, _ = strings.Cut(version, ".")
	n, _ := strconv.Atoi(version) // 0, which counts as old, if there is no version
	return n
}

// compareNumbered compares strings, and runs of digits in them as numbers.
func compareNumbered(a, b string) int {
	for a != "" && b != "" {
		m, n := digits(a), digits(b)
		if m > 0 && n > 0 {
			x, _ := strconv.ParseUint(a[:m], 10, 64) // numbers that overflow compare equal
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

// digits returns the number of digits at the start of s.
func digits(s string) int { return len(s) - len(strings.TrimLeft(s, "0123456789")) }

// tiers returns the usual directories of CUDA's libraries, as glob patterns: the toolkit that
// the user names, other toolkits and the system, and Python packages.
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

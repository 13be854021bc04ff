package cuda

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// A Report describes the CUDA installation of this machine, for people to read.
type Report struct {
	// Problem says why no GPU can be used and what to do; "" if one can.
	Problem string `json:"problem,omitempty"`
	// Module is the version of the NVIDIA kernel module; "" if it is not loaded.
	Module string `json:"module,omitempty"`
	// CUDA is the newest version that the driver supports, such as "13.0"; "" without one.
	CUDA      string  `json:"cuda,omitempty"`
	Devices   []Info  `json:"devices"`
	Libraries []Found `json:"libraries"`
}

// Found is the result of the search for a library.
type Found struct {
	Name    string `json:"name"`
	Path    string `json:"path,omitempty"` // its file
	Version string `json:"version,omitempty"`
	Problem string `json:"problem,omitempty"` // why it cannot be used, and what to do
	// Instead says what happens without the library; "" if it is required.
	Instead string `json:"instead,omitempty"`
}

// moduleVersion is the file in which the kernel module reports its version.
const moduleVersion = "/proc/driver/nvidia/version"

// Inspect looks for the driver, the devices and the libraries except NCCL, which
// nccl.Inspect looks for. In a program that is not built for GPUs it reports only the kernel
// module.
func Inspect() Report {
	r := Report{Devices: []Info{}, Libraries: []Found{}}
	if text, err := os.ReadFile(moduleVersion); err == nil {
		r.Module = moduleOf(string(text))
	}
	if err := supported(); err != nil {
		r.Problem = err.Error()
		return r
	}
	devices, err := Devices()
	if err != nil {
		r.Problem = err.Error()
	} else {
		r.Devices = devices
	}
	loaded.Lock()
	version, library := loaded.version, loaded.library
	loaded.Unlock()
	driver := Found{Name: Driver.Name}
	if library != nil {
		r.CUDA = versionText(version)
		driver.Path, driver.Version = library.Path, "CUDA "+r.CUDA
	} else {
		driver.Problem = withoutPrefix(err)
	}
	r.Libraries = append(r.Libraries, driver, inspectNVRTC(), inspectBLAS(), inspectDNN())
	return r
}

// moduleOf returns the version in the first line of moduleVersion:
// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun 6 ...".
func moduleOf(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	for word := range strings.FieldsSeq(line) {
		if word[0] >= '0' && word[0] <= '9' && strings.Contains(word, ".") {
			return word
		}
	}
	return strings.TrimSpace(line)
}

// NewFound returns what a search found, or the problem err. library may then be nil.
func NewFound(l Library, library *Shared, version string, err error) Found {
	found := Found{Name: l.Name, Version: version, Problem: withoutPrefix(err)}
	if library != nil {
		found.Path = library.Path
	}
	return found
}

// withoutPrefix returns the text of an error without that of ErrUnavailable.
func withoutPrefix(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	if errors.Is(err, ErrUnavailable) {
		text = strings.TrimPrefix(text, ErrUnavailable.Error()+": ")
	}
	return text
}

func inspectNVRTC() Found {
	compiler.Lock()
	defer compiler.Unlock()
	if err := openCompiler(); err != nil {
		return Found{Name: NVRTC.Name, Problem: withoutPrefix(err)}
	}
	found := Found{Name: NVRTC.Name, Path: compiler.library.Path, Version: fmt.Sprintf("%d.%d", compiler.major, compiler.minor)}
	found.Problem = withoutPrefix(cmp.Or(tryCompiler(), compilerMismatch()))
	return found
}

// tryCompiler compiles an empty kernel, because NVRTC opens its library of built-ins only
// when it compiles. The caller holds the compiler's lock.
func tryCompiler() error {
	const nothing = "extern \"C\" __global__ void nothing() {}"
	options := []string{"--std=c++17"}
	if len(compiler.archs) > 0 {
		options = append(options, fmt.Sprintf("--gpu-architecture=compute_%d", slices.Max(compiler.archs))) // NVRTC warns about old ones
	}
	s := Source{Name: "nothing.cu", Text: nothing}
	if _, log, err := runNVRTC(s, options, false); err != nil {
		return notCompiled(s, err, log)
	}
	return nil
}

func inspectBLAS() Found {
	version, err := BLASVersion()
	if err != nil {
		return Found{Name: CublasLt.Name, Problem: withoutPrefix(err)}
	}
	return NewFound(CublasLt, theBLAS(), version, blasMismatch())
}

// BLASVersion returns the version of cuBLASLt, such as "13.0.0". The error wraps
// ErrUnavailable and says in one line what is missing and how to get it.
func BLASVersion() (string, error) {
	if err := openBLAS(nil); err != nil {
		return "", err
	}
	return blasVersionText(blasVersion()), nil
}

// blasVersionText returns 11.11.3 for 111103 and 13.0.0 for 130000. A major version counts
// 10000.
func blasVersionText(v int) string {
	return fmt.Sprintf("%d.%d.%d", v/10000, v/100%100, v%100)
}

// inspectDNN looks for cuDNN, without which our kernels compute convolutions.
func inspectDNN() Found {
	version, err := DNNVersion()
	if err != nil {
		return Found{Name: CuDNN.Name, Problem: withoutPrefix(err), Instead: "convolutions use ringtrain's own kernels"}
	}
	dnn.Lock()
	defer dnn.Unlock()
	return Found{Name: CuDNN.Name, Path: dnn.library.Path, Version: version}
}

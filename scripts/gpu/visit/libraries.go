package main

import (
	"cmp"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The libraries that the visit names to the commands. The driver is not among them, because
// tests use the emulator if a driver is named.
var libraries = []struct {
	variable string
	sonames  []string // newest first
}{
	{"RINGTRAIN_NVRTC_LIB", []string{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"}},
	{"RINGTRAIN_CUBLASLT_LIB", []string{"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11"}},
	{"RINGTRAIN_CUDNN_LIB", []string{"libcudnn.so.9", "libcudnn.so.8"}},
	{"RINGTRAIN_NCCL_LIB", []string{"libnccl.so.2"}},
}

// librarySettings returns variables that name CUDA's libraries. LD_LIBRARY_PATH has their
// directories, because some libraries open others by name. Variables that are already set
// keep their values. driver is the driver's major version of CUDA, or 0 if it is unknown.
func librarySettings(driver int, p python) (env []string) {
	var dirs []string
	for _, l := range libraries {
		file := cmp.Or(os.Getenv(l.variable), findLibrary(l.sonames, driver, p))
		if file == "" {
			continue
		}
		env = append(env, l.variable+"="+file)
		if dir := filepath.Dir(file); dir != "." && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	if before := os.Getenv("LD_LIBRARY_PATH"); before != "" {
		dirs = append(dirs, before)
	}
	return append(env, "LD_LIBRARY_PATH="+strings.Join(dirs, ":"))
}

// findLibrary returns the file of a library, or "". Toolkits and the system come before Python
// packages, which lack libraries that others open by name. As in package cuda, versions newer
// than the driver come last of all, because the driver may reject what they compile.
func findLibrary(sonames []string, driver int, p python) string {
	newer := func(soname string) bool {
		_, version, _ := strings.Cut(soname, ".so.")
		return driver > 0 && number(version) > driver
	}
	for _, last := range []bool{false, true} {
		part := slices.DeleteFunc(slices.Clone(sonames), func(soname string) bool { return newer(soname) != last })
		if file := findFirst(part, p); file != "" {
			return file
		}
	}
	return ""
}

// findFirst returns the file of the first soname in the first group of directories that has
// any, or "".
func findFirst(sonames []string, p python) string {
	var systems []string
	if home := os.Getenv("CUDA_HOME"); home != "" {
		systems = append(systems, home+"/lib64")
	}
	systems = append(systems, "/usr/local/nvidia/lib64", "/usr/local/cuda*/lib64", "/usr/lib/*-linux-gnu", "/usr/lib64")
	for _, patterns := range [][]string{systems, p.wheels()} {
		for _, soname := range sonames {
			for _, pattern := range patterns {
				found, _ := filepath.Glob(filepath.Join(pattern, soname)) // the pattern is well-formed
				if len(found) > 0 {
					return newest(found)
				}
			}
		}
	}
	return ""
}

// newest returns the path with the highest version; there is at least one path. It compares
// runs of digits as numbers, so cuda-12.10 comes after cuda-12.9.
func newest(paths []string) string {
	padded := func(path string) string {
		return regexp.MustCompile(`[0-9]+`).ReplaceAllStringFunc(path, func(digits string) string {
			return strings.Repeat("0", max(0, 9-len(digits))) + digits
		})
	}
	return slices.MaxFunc(paths, func(a, b string) int { return cmp.Compare(padded(a), padded(b)) })
}

// number returns 12 for 12 and for 12.9, and 0 for what begins with no number.
func number(version string) int {
	major, _, _ := strings.Cut(version, ".")
	n, _ := strconv.Atoi(major) // 0 means unknown
	return n
}

// dynamic returns a file's soname, the libraries it needs, and its search path.
func dynamic(path string) (string, error) {
	file, err := elf.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	var said []string
	for _, tag := range []elf.DynTag{elf.DT_SONAME, elf.DT_NEEDED, elf.DT_RPATH, elf.DT_RUNPATH} {
		values, err := file.DynString(tag)
		if err != nil {
			return "", err
		}
		if len(values) > 0 {
			said = append(said, fmt.Sprintf("%s %s", strings.TrimPrefix(tag.String(), "DT_"), strings.Join(values, " ")))
		}
	}
	return cmp.Or(strings.Join(said, "; "), "static"), nil
}

// lacking returns the driver's functions that ringtrain calls and a library lacks. list has
// the format of cuda/symbols.txt.
func lacking(list, library string) (missing []string, err error) {
	file, err := elf.Open(library)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	symbols, err := file.DynamicSymbols()
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for _, s := range symbols {
		has[s.Name] = s.Section != elf.SHN_UNDEF
	}
	for line := range strings.Lines(list) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] != "own" && fields[0] != "cu" {
			continue
		}
		if !slices.ContainsFunc(fields[1:], func(name string) bool { return has[name] }) {
			missing = append(missing, fields[1])
		}
	}
	return missing, nil
}

package calibration

import (
	"io/fs"
	"path"
	"runtime"
	"strings"
)

// A Host is what choices depend on. Choices made on one host are valid on another that
// equals it.
type Host struct {
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"` // that this process may run on
	Cache      int    `json:"cache"` // bytes of a core's L2 cache; 0 if unknown
	Kernel     string `json:"kernel"`
	Hypervisor string `json:"hypervisor"` // as the firmware names it
}

// ThisHost describes this host. It knows nothing about the kernel and the hypervisor
// where the system does not report them in files.
func ThisHost(system fs.FS) Host {
	return Host{
		CPU: cpu(system), Cores: runtime.NumCPU(), Cache: secondLevel(system),
		Kernel:     line(system, "proc/sys/kernel/osrelease") + " " + line(system, "proc/sys/kernel/version"),
		Hypervisor: strings.TrimSpace(line(system, "sys/class/dmi/id/sys_vendor") + " " + line(system, "sys/class/dmi/id/product_name")),
	}
}

// cpuKeys are the lines of /proc/cpuinfo that tell processors apart. A hypervisor may
// give many models one name.
var cpuKeys = []string{"vendor_id", "cpu family", "model", "model name", "stepping", "cache size", "CPU implementer", "CPU part", "CPU variant"}

// cpu returns what /proc/cpuinfo says about the first processor.
func cpu(system fs.FS) string {
	f, err := system.Open("proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	first := make([]byte, 8<<10) // hosts with many processors have far more
	n, _ := f.Read(first)
	parts := []string{runtime.GOARCH}
	for text := range strings.Lines(string(first[:n])) {
		name, value, ok := strings.Cut(text, ":")
		if !ok {
			break // the end of the first processor
		}
		for _, key := range cpuKeys {
			if strings.TrimSpace(name) == key {
				parts = append(parts, key+" "+strings.TrimSpace(value))
			}
		}
	}
	return strings.Join(parts, ", ")
}

// secondLevel returns the size of a core's L2 cache in bytes, or 0. /proc/cpuinfo
// has it as "cache size" on AMD, and that of the last level on Intel.
func secondLevel(system fs.FS) int {
	const caches = "sys/devices/system/cpu/cpu0/cache"
	all, _ := fs.ReadDir(system, caches)
	for _, cache := range all {
		dir := path.Join(caches, cache.Name())
		if line(system, path.Join(dir, "level")) != "2" || line(system, path.Join(dir, "type")) == "Instruction" {
			continue
		}
		if bytes, err := parseSize(line(system, path.Join(dir, "size"))); err == nil {
			return bytes
		}
	}
	return 0
}

// line returns a file's text without surrounding space; "" if it cannot be read.
func line(system fs.FS, name string) string {
	text, err := fs.ReadFile(system, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

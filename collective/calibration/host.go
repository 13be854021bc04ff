package calibration

import (
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/collective/procfs"
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
		Kernel:     procfs.Line(system, "proc/sys/kernel/osrelease") + " " + procfs.Line(system, "proc/sys/kernel/version"),
		Hypervisor: strings.TrimSpace(procfs.Line(system, "sys/class/dmi/id/sys_vendor") + " " + procfs.Line(system, "sys/class/dmi/id/product_name")),
	}
}

// cpuKeys are the lines of /proc/cpuinfo that tell processors apart. A hypervisor may
// give many models one name.
var cpuKeys = []string{"vendor_id", "cpu family", "model", "model name", "stepping", "cache size", "CPU implementer", "CPU part", "CPU variant"}

// cpu returns what /proc/cpuinfo says about the first processor.
func cpu(system fs.FS) string {
	parts := []string{runtime.GOARCH}
	for name, value := range procfs.Processor(system) {
		if slices.Contains(cpuKeys, name) {
			parts = append(parts, name+" "+value)
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
		if procfs.Line(system, path.Join(dir, "level")) != "2" || procfs.Line(system, path.Join(dir, "type")) == "Instruction" {
			continue
		}
		if bytes, ok := ParseSize(procfs.Line(system, path.Join(dir, "size"))); ok {
			return bytes
		}
	}
	return 0
}

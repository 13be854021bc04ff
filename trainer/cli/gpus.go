package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/trainer/job/machine"
)

// writeGPUs writes what was found of CUDA. Finding nothing is no failed check: most machines
// have no GPU and train on their CPUs.
func writeGPUs(w io.Writer, r cuda.Report) {
	if r.Problem != "" {
		fmt.Fprintf(w, "GPU       %s\n", r.Problem)
	}
	for _, d := range r.Devices {
		fmt.Fprintf(w, "GPU       %d: %s, %s, %s, %d multiprocessors\n", d.Index, d.Name, d.Arch(), machine.GiB(d.Memory), d.Multiprocessors)
	}
	if r.Module != "" {
		fmt.Fprintf(w, "module    NVIDIA %s, in the kernel\n", r.Module)
	}
	for _, l := range r.Libraries {
		switch {
		case l.Problem == "":
			fmt.Fprintf(w, "%-9s %s, %s\n", l.Name, l.Version, l.Path)
		case strings.Contains(r.Problem, l.Problem): // which says it already
		case l.Instead != "":
			fmt.Fprintf(w, "%-9s not used: %s; without it %s\n", l.Name, l.Problem, l.Instead)
		case l.Version == "":
			fmt.Fprintf(w, "%-9s missing: %s\n", l.Name, l.Problem)
		default:
			fmt.Fprintf(w, "%-9s %s\n", l.Name, strings.TrimPrefix(l.Problem, l.Name+" ")) // it names version and file
		}
	}
}

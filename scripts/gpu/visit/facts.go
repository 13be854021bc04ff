package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// facts describes the machine and its libraries, and runs doctor.
func (v *visit) facts(r *result) {
	r.figure("machine: %s; %d cores; %s; python: %s", v.card(), runtime.NumCPU(), kernelVersion(), v.python)
	for _, name := range binaries {
		if _, err := os.Stat(v.program(name)); err != nil {
			r.fail("%s is missing: build it with scripts/gpu-check.sh --build", name)
		}
	}
	v.doctor(r)
	opened := v.opened(r)
	v.files(r, opened)
	v.symbols(r, opened)
}

// binaries are the programs that a visit needs, besides itself.
var binaries = []string{"cuda.test", "gpu.test", "kernels.test", "ncclgroup.test", "ringtrain", "speed", "probe"}

// card reports what nvidia-smi says about the GPU. It changes no setting.
func (v *visit) card() string {
	if v.emulator {
		return "the emulator, no GPU"
	}
	path, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return "no nvidia-smi"
	}
	o := v.execute(command{name: "nvidia-smi", limit: 10 * time.Second, args: []string{
		path, "--query-gpu=name,driver_version,memory.total,compute_cap,clocks.max.sm,mig.mode.current", "--format=csv,noheader"}})
	if problem := o.problem(); problem != "" {
		return "nvidia-smi: " + problem
	}
	return "GPU " + strings.Join(strings.Split(strings.TrimSpace(afterCommand(o.text)), "\n"), "; GPU ")
}

func kernelVersion() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOOS
	}
	return "Linux " + strings.TrimSpace(string(text))
}

// afterCommand returns a log without its first line, which is the command.
func afterCommand(text string) string {
	_, rest, _ := strings.Cut(text, "\n")
	return rest
}

// A diagnosis is the part of doctor --json that the visit uses.
type diagnosis struct {
	GPU struct {
		Problem, CUDA, Module string
		Devices               []struct {
			Name         string
			Major, Minor int
		}
		// Instead says what happens without the library; "" if it is required.
		Libraries []struct{ Name, Path, Version, Problem, Instead string }
	}
}

// diagnose runs ringtrain doctor --json. said is false if its output is no JSON.
func (r *runner) diagnose(log string) (d diagnosis, o outcome, said bool) {
	o = r.execute(command{name: log, args: []string{r.program("ringtrain"), "doctor", "--json"}, limit: 15 * time.Second})
	at := strings.Index(o.text, "{")
	return d, o, at >= 0 && json.NewDecoder(strings.NewReader(o.text[at:])).Decode(&d) == nil
}

// driver returns the major version of CUDA that the driver supports, or 0 if doctor does not
// report it. It runs before the first step, so it sets its own time limit.
func (r *runner) driver() int {
	r.until = time.Now().Add(15 * time.Second)
	d, _, _ := r.diagnose("driver")
	return number(d.GPU.CUDA)
}

// doctor runs ringtrain doctor, once for the logs and once for the results.
func (v *visit) doctor(r *result) {
	v.execute(command{name: "doctor", args: []string{v.program("ringtrain"), "doctor"}, limit: 15 * time.Second})
	d, o, said := v.diagnose("doctor-json")
	if !said {
		r.fail("ringtrain doctor --json: %s: %s", o.problem(), brief(strings.Split(afterCommand(o.text), "\n"), 2))
		return
	}
	if d.GPU.Problem != "" || len(d.GPU.Devices) == 0 {
		r.fail("doctor finds no GPU: %s", d.GPU.Problem)
	} else {
		r.Passed++
		g := d.GPU.Devices[0]
		v.arch = fmt.Sprintf("%d%d", g.Major, g.Minor)
		r.figure("doctor: %d device(s), %s, compute capability %d.%d, CUDA %s, module %s", len(d.GPU.Devices), g.Name, g.Major, g.Minor, d.GPU.CUDA, d.GPU.Module)
	}
	for _, l := range d.GPU.Libraries {
		switch {
		case l.Problem == "":
			r.Passed++
			r.figure("%s %s: %s", l.Name, l.Version, l.Path)
		case l.Instead != "":
			r.skip(false, "%s: %s; %s", l.Name, clip(l.Problem, 200), l.Instead)
		default:
			r.fail("%s: %s", l.Name, clip(l.Problem, 300))
		}
	}
}

// opened returns the libraries that ringtrain doctor opened, as glibc's loader logs them.
func (v *visit) opened(r *result) (files []string) {
	o := v.execute(command{name: "loader", args: []string{v.program("ringtrain"), "doctor"}, env: []string{"LD_DEBUG=libs"}, limit: 20 * time.Second})
	for line := range strings.Lines(o.text) {
		if _, file, found := strings.Cut(line, "calling init: "); found {
			if file = strings.TrimSpace(file); !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	if len(files) == 0 {
		r.figure("unknown which libraries were opened: the loader does not support LD_DEBUG")
	}
	return files
}

// files describes the opened libraries, and checks that our binaries start without CUDA's.
func (v *visit) files(r *result, opened []string) {
	var table bytes.Buffer
	fmt.Fprint(&table, "### Libraries\n\nOpened by `ringtrain doctor`.\n\n| file | links to | dynamic section |\n|---|---|---|\n")
	for _, file := range opened {
		real, err := filepath.EvalSymlinks(file)
		if err != nil {
			real = err.Error()
		}
		about, err := dynamic(file)
		if err != nil {
			about = err.Error()
		}
		fmt.Fprintf(&table, "| %s | %s | %s |\n", file, filepath.Base(real), about)
		if base := filepath.Base(file); strings.HasPrefix(base, "libcu") || strings.HasPrefix(base, "libnv") || strings.HasPrefix(base, "libnccl") {
			r.figure("opened %s (%s)", file, filepath.Base(real))
		}
	}
	fmt.Fprint(&table, "\n| binary | |\n|---|---|\n")
	for _, name := range binaries {
		about, err := dynamic(v.program(name))
		if err != nil {
			continue // facts reports that it is missing
		}
		fmt.Fprintf(&table, "| %s | %s |\n", name, about)
		for _, library := range []string{"libcuda", "libcublas", "libnvrtc", "libnccl", "libcudnn"} {
			if strings.Contains(about, library) {
				r.fail("%s links against %s, but must open it at run time", name, library)
			}
		}
	}
	r.Tables = append(r.Tables, table.String())
}

// symbols checks that the driver has the functions that ringtrain calls.
func (v *visit) symbols(r *result, opened []string) {
	list, err := os.ReadFile(filepath.Join(v.root, "cuda", "symbols.txt"))
	if err != nil {
		r.fail("list of the driver's functions: %v", err)
		return
	}
	i := slices.IndexFunc(opened, func(file string) bool { return strings.HasPrefix(filepath.Base(file), "libcuda.so") })
	if i < 0 {
		r.skip(false, "cannot check the driver's functions: unknown which file was opened")
		return
	}
	missing, err := lacking(string(list), opened[i])
	switch {
	case err != nil:
		r.fail("functions of the driver: %v", err)
	case len(missing) > 0:
		r.fail("%s lacks %s", opened[i], strings.Join(missing, " "))
	default:
		r.Passed++
		r.figure("the driver has all functions that ringtrain calls")
	}
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// first returns the steps of a first visit, in order. The expected seconds are estimates:
// creating a context takes .3 to 1 s, compiling all kernels .3 to 2 s once, and loading the
// libraries about a second per process. The table shows the seconds that each step took.
func first() []step {
	return []step{
		{"facts", "versions, libraries, doctor", 15, 40, 40, (*visit).facts},
		{"cuda", "tests of package cuda", 20, 60, 60, (*visit).cudaTests},
		{"training", "200 steps compared with the CPU, whole-step graphs", 60, 120, 90, (*visit).training},
		{"parity", "each kernel in its own process, against the CPU", 50, 90, 90, (*visit).parity},
		{"conformance", "the rest of nn/gpu", 45, 110, 60, (*visit).conformance},
		{"costs", "launches, graphs, copies and products", 30, 60, 60, (*visit).costs},
		{"train", "the command on both examples, 1 and 2 workers", 60, 110, 90, func(v *visit, r *result) { v.trainings.compare(r) }},
		{"entities", "a recogniser of named entities: 1000 steps, and losses compared with the CPU", 15, 60, 30, func(v *visit, r *result) { v.trainings.entities(r) }},
		{"nccl", "NCCL's operations, and processes that share the GPU", 55, 120, 60, (*visit).nccl},
		{"kill", "a killed rank, with and without graphs", 50, 100, 90, (*visit).kills},
		{"speed", "training steps compared with PyTorch", 125, 200, 60, (*visit).speed},
	}
}

// second returns the steps of a second visit.
func second() []step {
	return []step{
		{"failed", "failures of the first visit, alone", 120, 240, 120, (*visit).failedBefore},
		{"sanitizer", "compute-sanitizer on the kernels and a run", 160, 260, 30, (*visit).sanitize},
		{"bf16", "bfloat16 and TF32", 70, 120, 60, (*visit).narrow},
		{"overlap", "steps that sum gradients during the backward pass", 90, 130, 60, (*visit).overlap},
		{"bench", "bench collective, with and without NCCL", 60, 100, 60, (*visit).bench},
	}
}

func (v *visit) cudaTests(r *result) {
	v.suites.run(r, suite{name: "cuda", binary: "cuda.test", dir: "cuda", skip: "Headers|StubsFail|TestProgramNeedsNoCUDA",
		trial:     "^(TestDevices|TestCopies|TestKernels|TestGraphs|TestStreamsAndEvents)$",
		essential: []string{"TestDevices", "TestCopies", "TestKernels", "TestGraphs", "TestStreamsAndEvents", "TestProducts", "TestOtherThread", "TestDeviceThread", "TestConvolutions"}})
}

// long matches the tests of nn/gpu that have their own step.
const long = "^(TestTraining|TestWholeStep|TestWholeStepCalls|TestLockstep|TestFreeRun)$"

func (v *visit) training(r *result) {
	got := v.suites.run(r, suite{name: "training", binary: "gpu.test", dir: "nn/gpu", run: long,
		trial: "^(TestWholeStepCalls|TestLockstep)$/convnet", env: v.suites.few(),
		essential: []string{"TestTraining", "TestWholeStep", "TestWholeStepCalls", "TestLockstep", "TestFreeRun"}})
	r.quote(got, "ReLU flipped: the loss", "accuracy after", "kernels of a graph")
}

// parity compares the kernels with nn/cpu. A fault breaks its whole process, so each kernel
// has its own process, a few at a time.
func (v *visit) parity(r *result) {
	got := v.suites.run(r, suite{name: "resources", binary: "kernels.test", dir: "cuda/kernels", run: "^(TestImageIsOfTheSource|TestImageHasBounds|TestResources)$",
		essential: []string{"TestImageIsOfTheSource", "TestImageHasBounds", "TestResources"}})
	r.Tables = append(r.Tables, "### Registers and shared memory of each kernel\n\n```\n"+strings.Join(got.said["TestResources"], "\n")+"\n```\n")
	names, _ := kernels(v.root)
	if len(names) == 0 {
		r.fail("found no kernels in %s: -root must be the source tree", filepath.Join(v.root, "cuda", "kernels"))
	}
	atOnce := 4
	if v.emulator {
		names, atOnce = names[:min(2, len(names))], 1 // go test compares all
	}
	type ran struct {
		outcome
		got verdicts
	}
	done := make([]ran, len(names))
	for from := 0; from < len(names); from += atOnce {
		var group sync.WaitGroup
		for i := from; i < min(from+atOnce, len(names)); i++ {
			test := exactly("TestParity/" + names[i])
			c := command{name: "parity-" + names[i], dir: filepath.Join(v.root, "cuda", "kernels"), limit: 30 * time.Second,
				args: []string{v.program("kernels.test"), "-test.v", "-test.run", test}}
			group.Go(func() {
				o := v.execute(c)
				done[i] = ran{o, parseTests(afterCommand(o.text))}
			})
		}
		group.Wait()
	}
	s := suite{name: "parity", binary: "kernels.test", dir: "cuda/kernels"}
	var broken []string
	for i, name := range names {
		test := "TestParity/" + name
		switch fate := done[i].got.fate(test); {
		case fate == passed && done[i].err == nil:
			r.Passed++
		case fate == omitted && done[i].err == nil:
			r.skip(true, "%s: %s", test, done[i].got.why(test))
		default:
			r.fail("%s: %s: %s", test, done[i].problem(), done[i].got.why(test))
			r.Broken = append(r.Broken, "kernels.test:"+test)
			broken = append(broken, test)
		}
	}
	v.suites.again(r, s, broken)
}

func (v *visit) conformance(r *result) {
	got := v.suites.run(r, suite{name: "conformance", binary: "gpu.test", dir: "nn/gpu", skip: long + "|^TestBF16",
		trial:     "^(TestQueue|TestRecordAgain|TestTempsRepeat|TestMistakes)$", // go test runs all
		essential: []string{"TestBackend", "TestQueue", "TestRecordAgain", "TestTempsRepeat", "TestMistakes", "TestFuserTimed", "TestWithoutNVRTC", "TestTimedProducts", "TestIllegalAddress", "TestConv", "TestConvTraining", "TestConvChoices", "TestEntities", "TestEntitiesLockstep"}})
	r.quote(got, "kernels of a step")
}

// costs measures CUDA itself with probe.c.
func (v *visit) costs(r *result) {
	var env []string
	if v.emulator {
		env = []string{"PROBE_QUICK=1", "LD_LIBRARY_PATH=" + filepath.Dir(v.setting("RINGTRAIN_NVRTC_LIB"))} // for its library of built-ins
	}
	o := v.execute(command{name: "costs", args: []string{v.program("probe"), v.arch}, env: env})
	text := afterCommand(o.text)
	r.Tables = append(r.Tables, "### What CUDA costs\n\n"+strings.ReplaceAll(text, "\n## ", "\n#### ")+"\n")
	if problem := o.problem(); problem != "" {
		said := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return !strings.HasPrefix(line, "not measured: ") })
		if len(said) == 0 {
			said = lastLines(text, 3)
		}
		r.fail("probe: %s: %s", problem, brief(said, 3))
		return
	}
	r.Passed++
	r.Figures = append(r.Figures, keyCosts(text)...)
}

// keyCosts returns the most important rows of the probe's tables as sentences.
func keyCosts(text string) (figures []string) {
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "| "), " | ")
		for row, format := range map[string]string{
			"primary context":                         "a context: %s",
			"cuLaunchKernel, the call":                "a launch, the call: %s",
			"until all are done":                      "a launch, until it is done: %s",
			"one launch and a wait, the least of 200": "a launch and a wait: %s",
			"100":                "a graph of 100 kernels: %s to instantiate, %s the call, %s until it is done, %s per kernel",
			"4":                  "a copy of 4 bytes and a wait: %s to the device, %s back",
			"401408":             "a copy of 401408 bytes and a wait: %s to the device, %s back",
			"4096 x 4096 x 4096": "a product of 4096 x 4096 x 4096: %s, %s, %s TFLOP/s",
		} {
			if cells[0] == row && len(cells) == 1+strings.Count(format, "%s") {
				values := make([]any, len(cells)-1)
				for i, cell := range cells[1:] {
					values[i] = cell
				}
				figures = append(figures, fmt.Sprintf(format, values...))
			}
		}
	}
	return figures
}

// nccl also keeps NCCL's log.
func (v *visit) nccl(r *result) {
	debug := filepath.Join(v.logsDir(), "nccl")
	if err := os.MkdirAll(debug, 0o755); err != nil {
		r.fail("%v", err)
	}
	got := v.suites.run(r, suite{name: "nccl", binary: "ncclgroup.test", dir: "collective/ncclgroup",
		run: "^(TestProcesses|TestOperations|TestRingOrder|TestSub|TestQueue|TestCaptureOfAGroupsCall)", trial: "^(TestProcesses|TestRingOrder)",
		env:       []string{"NCCL_DEBUG=INFO", "NCCL_DEBUG_FILE=" + filepath.Join(debug, "%h-%p.log")},
		essential: []string{"TestProcesses", "TestOperationsInProcesses"}}) // some versions of NCCL do not let ranks of one process share a GPU
	for _, name := range got.of("PASS") {
		r.figure("%s passed", name)
	}
	files, _ := filepath.Glob(filepath.Join(debug, "*.log")) // the pattern is well-formed
	for _, file := range files {
		for line := range strings.Lines(readLog(file)) {
			if _, version, found := strings.Cut(line, "NCCL version "); found {
				r.figure("NCCL version %s", strings.TrimSpace(version))
				return
			}
		}
	}
}

// kills kills ranks during calls and graphs, and workers of runs.
func (v *visit) kills(r *result) {
	v.trainings.killed(r)
	got := v.suites.run(r, suite{name: "kill", binary: "ncclgroup.test", dir: "collective/ncclgroup", run: "^TestKilledRank$/^(calls,_rank_1|graphs,_rank_[02]|held,_rank_1)$", trial: "^TestKilledRank$/^graphs,_rank_0$",
		essential: []string{"TestKilledRank"}})
	r.quote(got, "all know after")
}

// speed times our steps, alternating with PyTorch's.
func (v *visit) speed(r *result) {
	args := []string{v.program("speed")}
	if v.emulator {
		args = append(args, "-quick")
	} else {
		args = append(args, "-limit", fmt.Sprintf("%.0fs", (v.left()-4*v.grace).Seconds()))
	}
	switch {
	case v.python.torch && !v.emulator:
		// PyTorch must find its own libraries, not those set for ringtrain.
		args = append(args, "env", "LD_LIBRARY_PATH="+os.Getenv("LD_LIBRARY_PATH"), v.python.path, filepath.Join(v.root, "scripts", "gpu", "baselines.py"))
	case v.emulator:
		r.figure("no PyTorch: timed only ringtrain")
	default:
		r.skip(true, "no PyTorch: timed only ringtrain")
	}
	o := v.execute(command{name: "speed", args: args})
	r.Tables = append(r.Tables, "### Speed\n"+afterCommand(o.text))
	if problem := o.problem(); problem != "" {
		r.fail("speed: %s: %s", problem, brief(lastLines(afterCommand(o.text), 4), 3))
	} else {
		r.Passed++
	}
	for line := range strings.Lines(o.text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| model ") && !strings.HasPrefix(line, "| numbers ") && !strings.HasPrefix(line, "| goal ") {
			r.figure("%s", strings.Trim(line, "| "))
		}
	}
}

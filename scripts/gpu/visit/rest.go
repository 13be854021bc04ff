package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// directories maps test binaries to the working directories of their tests.
var directories = map[string]string{"cuda.test": "cuda", "gpu.test": "nn/gpu", "kernels.test": "cuda/kernels", "ncclgroup.test": "collective/ncclgroup"}

// failedBefore runs the failed tests of the first visit again, and whole steps that failed
// without a failed test.
func (v *visit) failedBefore(r *result) {
	list, from, err := v.before()
	if err != nil {
		r.fail("%v", err)
		return
	}
	r.figure("%d failures to check again, from %s", len(list), from)
	if len(list) == 0 {
		r.Passed++
	}
	for _, what := range list {
		binary, test, isTest := strings.Cut(what, ":")
		if !isTest {
			v.stepAgain(r, what)
			continue
		}
		dir, known := directories[binary]
		if !known {
			r.fail("%s: unknown test binary %s", what, binary)
			continue
		}
		v.suites.run(r, suite{name: "failed", binary: binary, dir: dir, run: exactly(test), limit: 60 * time.Second})
	}
}

func (v *visit) stepAgain(r *result, name string) {
	all := append(first(), second()...)
	i := slices.IndexFunc(all, func(s step) bool { return s.name == name })
	if i < 0 || name == "failed" {
		r.fail("%s is neither a step nor BINARY:TEST", name)
		return
	}
	all[i].do(v, r)
}

// before returns the failures of the first visit, and the file or flag that lists them.
func (s settings) before() (list []string, from string, err error) {
	if s.failed != "" {
		return strings.Split(s.failed, ","), "-failed", nil
	}
	files := []string{filepath.Join(s.binaries, "result.json"), filepath.Join(s.out, "result.json")}
	if s.earlier != "" {
		files = []string{s.earlier}
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) && s.earlier == "" {
			continue
		}
		var earlier struct{ Steps []result }
		if err == nil {
			err = json.Unmarshal(text, &earlier)
		}
		if err != nil {
			return nil, path, fmt.Errorf("%s is not the result.json of a visit: %w", path, err)
		}
		return failures(earlier.Steps), path, nil
	}
	return nil, "", fmt.Errorf("no result.json of a first visit: put it into %s, or name the failures with -failed", s.binaries)
}

// failures returns the broken tests of a visit, and its steps that are not ok but have none.
func failures(steps []result) (list []string) {
	for _, s := range steps {
		switch {
		case s.Verdict == ok:
		case len(s.Broken) > 0:
			list = append(list, s.Broken...)
		case s.Step != "failed":
			list = append(list, s.Step)
		}
	}
	return list
}

// sanitize runs each kernel under memcheck and initcheck, those that share memory also under
// racecheck and synccheck, and a run under memcheck.
func (v *visit) sanitize(r *result) {
	sanitizer := v.suites.sanitizer()
	switch {
	case v.emulator:
		r.figure("no compute-sanitizer: only the emulator's own checks")
		v.suites.run(r, suite{name: "races", binary: "kernels.test", dir: "cuda/kernels", run: exactly("TestParity/sum_rows"), env: []string{"RINGTRAIN_EMULATOR_RACES=1"}})
		return
	case sanitizer == "":
		r.skip(true, "no compute-sanitizer: install a CUDA toolkit")
		return
	}
	all, shared := kernels(v.root)
	for _, c := range []struct {
		tool, binary, dir, run string
		about                  int
	}{
		{"memcheck", "kernels.test", "cuda/kernels", "^TestParity$", len(all)},
		{"racecheck", "kernels.test", "cuda/kernels", "^TestParity$/^(" + strings.Join(shared, "|") + ")$", len(shared)},
		{"synccheck", "kernels.test", "cuda/kernels", "^TestParity$/^(" + strings.Join(shared, "|") + ")$", len(shared)},
		{"initcheck", "kernels.test", "cuda/kernels", "^TestParity$", len(all)},
		{"memcheck", "gpu.test", "nn/gpu", "^TestTraining$", 0},
	} {
		what := c.tool + " of " + c.binary
		o := v.execute(command{name: "sanitizer-" + c.tool, dir: filepath.Join(v.root, c.dir), limit: 80 * time.Second,
			args: []string{sanitizer, "--tool", c.tool, "--error-exitcode", "9", "--print-limit", "20", v.program(c.binary), "-test.v", "-test.run", c.run}})
		passes := len(parseTests(o.text).of("PASS"))
		switch problem := o.problem(); {
		case problem != "":
			r.fail("%s: %s: %s", what, problem, brief(errorsOf(o.text, "TestParity"), 3))
		case passes < max(1, c.about):
			r.fail("%s: only %d of %d tests passed", what, passes, c.about)
		default:
			r.Passed++
			r.figure("%s: no errors in %d tests, %.0f s", what, passes, o.took.Seconds())
		}
	}
}

// narrow checks bfloat16, and trains with both narrow formats.
func (v *visit) narrow(r *result) {
	got := v.suites.run(r, suite{name: "bf16", binary: "gpu.test", dir: "nn/gpu", run: "^TestBF16", trial: "^TestBF16(Factors|Nodes)$", env: v.suites.few(),
		essential: []string{"TestBF16Factors", "TestBF16Nodes", "TestBF16Lockstep", "TestBF16Whole"}})
	r.quote(got, "ReLU flipped: the loss", "kernels of a step")
	v.suites.run(r, suite{name: "fewer-bits", binary: "cuda.test", dir: "cuda", run: "^TestProductsOfFewerBits$", essential: []string{"TestProductsOfFewerBits"}})
	full := v.trainings.run(r, "mnist", "1", "cuda")
	for _, flag := range []string{"--tf32", "--bf16"} {
		narrow := v.trainings.run(r, "mnist", "1", "cuda", flag)
		if full == nil || narrow == nil {
			continue
		}
		r.figure("mnist %s: accuracy %.4f, in float32 %.4f; %.0f and %.0f samples/s", flag, narrow.Accuracy, full.Accuracy, narrow.Rate, full.Rate)
		if difference := narrow.Accuracy - full.Accuracy; !v.emulator && (difference > .02 || difference < -.02) {
			r.fail("mnist %s: the accuracy is %.4f, but %.4f in float32", flag, narrow.Accuracy, full.Accuracy)
		}
	}
}

// overlap times steps that sum gradients during the backward pass.
func (v *visit) overlap(r *result) {
	// 23 MB of gradients go over sockets, between processes that take turns on the GPU. A step
	// may take a tenth of a second, and a run five seconds to start.
	size := []string{"--width", "2048", "--steps", "45", "--rounds", "2"}
	if v.emulator {
		size = []string{"--quick"}
	}
	args := append([]string{filepath.Join(v.root, "scripts", "gpu-overlap.sh")}, append(size, v.program("ringtrain"))...)
	o := v.execute(command{name: "overlap", args: args})
	text := afterCommand(o.text)
	r.Tables = append(r.Tables, "### Overlap\n\n"+text)
	if problem := o.problem(); problem != "" {
		r.fail("gpu-overlap.sh: %s: %s", problem, brief(lastLines(text, 4), 3))
	} else {
		r.Passed++
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| whole") || strings.HasPrefix(line, "| off") {
			r.figure("--graphs, all at once, in buckets, ratio: %s", strings.Trim(strings.TrimSpace(line), "| "))
		}
	}
}

// bench measures allreduce between ranks that share the GPU.
func (v *visit) bench(r *result) {
	for _, way := range []string{"must", "off"} {
		largest := "16M"
		if v.emulator {
			largest = "4K"
		}
		file := filepath.Join(v.logsDir(), "bench-"+way+".json")
		o := v.execute(command{name: "bench-" + way, limit: 60 * time.Second, args: []string{v.program("ringtrain"), "bench", "collective",
			"--device", "cuda", "--share-gpu", "--ranks", "2", "--nccl", way, "--minbytes", "1K", "--maxbytes", largest, "--json", file}})
		text := afterCommand(o.text)
		if problem := o.problem(); problem != "" {
			r.fail("bench collective --nccl %s: %s: %s", way, problem, brief(lastLines(text, 4), 3))
			continue
		}
		r.Passed++
		r.Tables = append(r.Tables, fmt.Sprintf("### bench collective --nccl %s\n\n```\n%s\n```\n", way, strings.TrimSpace(text)))
		rows := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") })
		r.figure("--nccl %s: %s", way, brief(rows[max(0, len(rows)-1):], 1))
	}
}

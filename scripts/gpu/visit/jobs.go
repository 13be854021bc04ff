package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// configs are the examples to train.
var configs = []string{"mnist", "convnet"}

// trainings runs the command's trainings.
type trainings struct{ *runner }

// compare compares trainings on the GPU with the same on the CPU, with 1 worker and with 2
// that share the GPU.
func (t trainings) compare(r *result) {
	for _, config := range configs {
		for _, workers := range []string{"1", "2"} {
			var flags []string
			if workers != "1" {
				flags = append(flags, "--nccl", "must") // so that the host does not replace a broken NCCL
			}
			gpu, cpu := t.run(r, config, workers, "cuda", flags...), t.run(r, config, workers, "cpu")
			if gpu == nil || cpu == nil {
				continue
			}
			if difference := gpu.Accuracy - cpu.Accuracy; difference > .01 || difference < -.01 {
				r.fail("%s, %s workers: the accuracy is %.4f on the GPU and %.4f on the CPU", config, workers, gpu.Accuracy, cpu.Accuracy)
			} else {
				r.Passed++
			}
			r.figure("%s, %s worker(s): accuracy %.4f, on the CPU %.4f; %.0f samples/s; %s", config, workers, gpu.Accuracy, cpu.Accuracy, gpu.Rate, gpu.Plan)
		}
	}
	t.buckets(r)
	t.choices(r)
}

// buckets compares summing gradients during the backward pass with summing them after it. With
// two workers there is only one order of sums, so the bits must be the same.
func (t trainings) buckets(r *result) {
	flags := []string{"--nccl", "must", "--bucket"}
	if !t.emulator { // on a GPU, each sum of processes that share it takes milliseconds
		flags = append([]string{"--steps", "60"}, flags...)
	}
	once, parts := t.run(r, "mnist", "2", "cuda", append(flags[:len(flags):len(flags)], "1000000000")...), t.run(r, "mnist", "2", "cuda", append(flags, "4096")...)
	switch {
	case once == nil || parts == nil:
	case once.Weights != parts.Weights:
		r.fail("mnist, 2 workers: the weights differ if gradients are summed during the backward pass: %s; %s", once.Plan, parts.Plan)
	default:
		r.Passed++
		r.figure("mnist, 2 workers, in buckets: the same bits; %s", parts.Plan)
	}
}

// An ending is the last event of a run.
type ending struct {
	Event    string
	Accuracy float64
	Steps    int
	Plan     string
	Rate     float64 `json:"samples_per_second"`
	Weights  string  `json:"weights_sha256"`
}

// run trains and returns the last event, or nil if it fails.
func (t trainings) run(r *result, config, workers, device string, flags ...string) *ending {
	args := []string{t.program("ringtrain"), "train", filepath.Join(t.root, "examples", config+".cfg"), "--workers", workers, "--device", device, "--json"}
	if device == "cuda" {
		args = append(args, "--share-gpu")
	}
	if t.emulator {
		args = append(args, "--steps", "2", "--batch", "16", "--data", "mnist:"+t.fewDigits())
	}
	name := fmt.Sprintf("train-%s-%s-%s", config, workers, device)
	o := t.execute(command{name: name, args: append(args, flags...), limit: 30 * time.Second})
	if problem := o.problem(); problem != "" {
		r.fail("%s: %s: %s", name, problem, brief(complaints(o.text), 3))
		return nil
	}
	for line := range strings.Lines(o.text) {
		var e ending
		if json.Unmarshal([]byte(line), &e) == nil && e.Event == "result" {
			r.Passed++
			return &e
		}
	}
	r.fail("%s: the training printed no result", name)
	return nil
}

// fewDigits returns a directory with a few images. Evaluating all of them would take seconds
// on the emulator.
func (t trainings) fewDigits() string {
	dir := filepath.Join(t.work, "digits")
	if _, err := os.Stat(dir); err != nil {
		// If this fails, the training fails too and says why.
		t.execute(command{name: "digits", args: []string{t.program("ringtrain"), "data", "digits", dir, "--train", "200", "--test", "200"}, limit: 20 * time.Second})
	}
	return dir
}

// complaints returns the lines that are not events, which come from stderr.
func complaints(text string) (lines []string) {
	for line := range strings.Lines(afterCommand(text)) {
		if !strings.HasPrefix(line, "{") {
			lines = append(lines, line)
		}
	}
	return lines
}

// choices trains with timed products, and reports which kernels were chosen and which
// products are fused with the operations that follow them.
func (t trainings) choices(r *result) {
	for _, config := range configs {
		dir := filepath.Join(t.logsDir(), "choices", config)
		if t.run(r, config, "1", "cuda", "--steps", "16", "--time-products", dir) == nil {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, "products-0.json"))
		if err != nil {
			r.fail("%s: --time-products: %v", config, err)
			continue
		}
		r.Tables = append(r.Tables, fmt.Sprintf("### Choices of %s\n\n```json\n%s\n```\n", config, clip(string(text), 8000)))
		fused, fusions := chosen(fusion, text, "0")
		dnn, convolutions := chosen(convolution, text, "-1")
		r.figure("%s, timed: %d of %d fusions are one product, %d of %d convolutions are cuDNN's", config, fused, fusions, dnn, convolutions)
	}
}

// Patterns of choices: one fused product or several kernels, and cuDNN's algorithm or our
// kernel.
var (
	fusion      = regexp.MustCompile(`"[A-Z]\w* as one [^"]*": *(-?\d+)`)
	convolution = regexp.MustCompile(`"conv2d [^"]*": *(-?\d+)`)
)

// chosen returns the number of choices of a kind, and how many of them are not plain.
func chosen(kind *regexp.Regexp, text []byte, plain string) (other, all int) {
	for _, m := range kind.FindAllSubmatch(text, -1) {
		if all++; string(m[1]) != plain {
			other++
		}
	}
	return other, all
}

// killed kills a worker of runs with one graph per step, with two, and without graphs.
// The job must end and name the worker.
func (t trainings) killed(r *result) {
	for _, graphs := range []string{"whole", "apart", "off"} {
		took, err := t.kill(graphs)
		if err != nil {
			r.fail("kill -9 of a worker with --graphs %s: %v", graphs, err)
			continue
		}
		r.Passed++
		r.figure("--graphs %s: the job ended %.2f s after the kill and named the worker", graphs, took.Seconds())
	}
}

// soon is the longest that a job may take to end after one of its workers was killed.
const soon = 5 * time.Second

func (t trainings) kill(graphs string) (took time.Duration, err error) {
	args := []string{t.program("ringtrain"), "train", filepath.Join(t.root, "examples", "mnist.cfg"), "--workers", "2", "--device", "cuda", "--share-gpu",
		"--json", "--graphs", graphs, "--steps", "1000000", "--evaluation.frequency", "1000000"}
	if t.emulator {
		args = append(args, "--batch", "4")
	}
	path := t.logFile("kill-" + graphs)
	file, err := create(path)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	fmt.Fprintf(file, "$ %s\n", strings.Join(args, " "))
	limit := min(40*time.Second, t.left()-2*t.grace)
	if limit <= 0 {
		return 0, errors.New("no time left")
	}
	cmd := exec.Command(args[0], args[1:]...)
	t.prepare(cmd, file)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	begun := time.Now()
	ended := make(chan error, 1)
	go func() {
		_, err := t.await(cmd, limit)
		ended <- err
	}()
	const victim = 1
	pid, err := t.whenSteps(path, ended, func() int { return worker(cmd, victim) })
	if err != nil {
		killAll(cmd)
		return 0, err
	}
	at := time.Now()
	if err := kill(pid); err != nil {
		return 0, err
	}
	<-ended // at most limit, see await
	took = time.Since(at)
	said := readLog(path)
	want := fmt.Sprintf("worker %d (pid %d) was killed by signal 9", victim, pid)
	switch {
	case cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1:
		return 0, fmt.Errorf("the job ended %.1f s after it began, with %v instead of exit code 1: %s", time.Since(begun).Seconds(), cmd.ProcessState, brief(complaints(said), 3))
	case !strings.Contains(said, want):
		return 0, fmt.Errorf("the job did not print %q: %s", want, brief(complaints(said), 3))
	case took > soon:
		return 0, fmt.Errorf("the job ended %.1f s after the kill, but may take at most %v", took.Seconds(), soon)
	}
	return took, nil
}

// stepEvent matches the events of steps.
var stepEvent = regexp.MustCompile(`"event":"step","step":(\d+)`)

// whenSteps waits until a job has made a dozen steps, and then returns the result of process.
func (t trainings) whenSteps(path string, ended <-chan error, process func() int) (pid int, err error) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			return 0, fmt.Errorf("the job ended before its twelfth step (%v): %s", err, brief(complaints(readLog(path)), 3))
		case <-ticker.C:
		}
		steps := stepEvent.FindAllStringSubmatch(readLog(path), -1)
		if len(steps) == 0 {
			continue
		}
		if n, _ := strconv.Atoi(steps[len(steps)-1][1]); n < 12 {
			continue
		}
		if pid = process(); pid == 0 {
			return 0, errors.New("cannot find the job's worker")
		}
		return pid, nil
	}
}

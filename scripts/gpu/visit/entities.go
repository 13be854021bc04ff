package main

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// What the training of examples/ner.cfg must reach on a GPU: the seconds of its 1000 steps, and the
// largest difference between the losses of its first steps and those on the CPU.
const (
	entitySeconds = 5.
	entityLoss    = 1e-3
)

// entities times the training of a recogniser of named entities, and compares its losses with those
// on the CPU, without dropout.
func (t trainings) entities(r *result) {
	// After 50 steps, losses also differ by more between two libraries for products on a CPU. A
	// test of nn/gpu compares 100 steps from equal weights.
	steps, compared, sentences := 1000, 25, "20000"
	if t.emulator {
		steps, compared, sentences = 2, 2, "50"
	}
	dir := filepath.Join(t.work, "entities")
	made := t.execute(command{name: "sentences", args: []string{t.program("ringtrain"), "data", "ner", dir, "--sentences", sentences}, limit: 20 * time.Second})
	if problem := made.problem(); problem != "" {
		r.fail("sentences: %s: %s", problem, brief(complaints(made.text), 3))
		return
	}
	if all := t.recognise(r, "cuda", dir, steps); len(all) > 0 {
		seconds := all[len(all)-1].Seconds
		r.figure("ner: %d steps in %.2f s", len(all), seconds)
		if !t.emulator && seconds > entitySeconds {
			r.fail("ner: %d steps took %.2f s, more than %v s", len(all), seconds, entitySeconds)
		} else {
			r.Passed++
		}
	}
	plain := []string{"--task.dropout", "0", "--task.hidden_dropout", "0"}
	gpu, cpu := t.recognise(r, "cuda", dir, compared, plain...), t.recognise(r, "cpu", dir, compared, plain...)
	worst := 0.
	for i := range min(len(gpu), len(cpu)) {
		worst = max(worst, math.Abs(gpu[i].Loss-cpu[i].Loss))
	}
	switch {
	case len(gpu) == 0 || len(cpu) == 0: // reported
	case len(gpu) != len(cpu) || !(worst <= entityLoss):
		r.fail("ner: the losses of %d steps differ by up to %.2g from those of %d steps on the CPU, by more than %v", len(gpu), worst, len(cpu), entityLoss)
	default:
		r.Passed++
		r.figure("ner, without dropout: the losses of %d steps differ by at most %.2g from those on the CPU", len(gpu), worst)
	}
}

// A stepLine is the event of a step.
type stepLine struct {
	Event   string
	Loss    float64
	Seconds float64 // since the first step began
}

// recognise trains a recogniser and returns its steps, or nil if the training fails.
func (t trainings) recognise(r *result, device, dir string, steps int, flags ...string) (all []stepLine) {
	args := []string{t.program("ringtrain"), "train", filepath.Join(t.root, "examples", "ner.cfg"), "--workers", "1", "--device", device, "--json",
		"--data", "ner:" + dir, "--steps", strconv.Itoa(steps), "--evaluation.frequency", "0"}
	if t.emulator {
		args = append(args, "--model.tok2vec.embed.width", "16", "--model.tok2vec.embed.rows", "[200, 100, 100, 100]", "--model.hidden_width", "16")
	}
	name := fmt.Sprintf("ner-%s-%d", device, steps)
	o := t.execute(command{name: name, args: append(args, flags...), limit: 30 * time.Second})
	if problem := o.problem(); problem != "" {
		r.fail("%s: %s: %s", name, problem, brief(complaints(o.text), 3))
		return nil
	}
	for line := range strings.Lines(o.text) {
		var e stepLine
		if json.Unmarshal([]byte(line), &e) == nil && e.Event == "step" {
			all = append(all, e)
		}
	}
	if len(all) == 0 {
		r.fail("%s: the training printed no steps", name)
	}
	return all
}

// Command step times one training step, from zeroing gradients to the optimizer, of
// ringtrain and gorgonia, and compares them with each other and with PyTorch, which
// step.py times. scripts/bench-step.sh runs all of them.
//
//	step batches FILE                    write initial weights and data for all programs
//	step ringtrain|gorgonia MODEL FILE [STEPS]
//	step table [-csv FILE] [-require LIST] [-note TEXT]... DIR
//
// MODEL is mlp, the model of examples/mnist.cfg, or convnet, that of
// examples/convnet.cfg. The second form writes one JSON object. The third reads these
// objects from MODEL-ROUND-PROGRAM.json in DIR, and writes a Markdown table to stdout.
// The exit code is 1 if something broke, if losses differ too much, or if a ratio is
// lower than required.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
)

// A usageError says what is wrong with a command line.
type usageError string

// Error implements error.
func (e usageError) Error() string { return string(e) }

// errUsage is the error of any other command line.
const errUsage = usageError("usage: step batches FILE | step ringtrain|gorgonia mlp|convnet FILE [STEPS] | step table [flags] DIR")

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	err := dispatch(args, stdout, stderr)
	if err == nil {
		return 0
	}
	fmt.Fprintf(stderr, "step: %v\n", err)
	if wrong := usageError(""); errors.As(err, &wrong) {
		return 2
	}
	return 1
}

func dispatch(args []string, stdout, stderr io.Writer) error {
	switch {
	case len(args) > 0 && args[0] == "table":
		return table(args[1:], stdout, stderr)
	case len(args) == 2 && args[0] == "batches":
		return writeBatches(args[1])
	case len(args) == 3 || len(args) == 4:
		return measure(args, stdout)
	}
	return errUsage
}

// measure times the steps of one program written in Go.
func measure(args []string, stdout io.Writer) error {
	steps := 300
	if len(args) == 4 {
		var err error
		if steps, err = strconv.Atoi(args[3]); err != nil || steps < 1 {
			return usageError(fmt.Sprintf("%q is not a number of steps", args[3]))
		}
	}
	program, ok := map[string]func(model, *batches, *clock) (string, error){
		"ringtrain": ringtrain,
		"gorgonia":  gorgonia,
	}[args[0]]
	m, known := modelNamed(args[1])
	if !ok || !known {
		return errUsage
	}
	b, err := readBatches(args[2])
	if err != nil {
		return err
	}
	c := newClock(steps)
	about, err := program(m, b, c)
	if err != nil {
		return err
	}
	r := c.record()
	r.Model, r.About = m.name, about
	return json.NewEncoder(stdout).Encode(r)
}

// Command step times one training step, zero gradients to optimizer, of
// ringtrain and of gorgonia, and sets the figures beside each other and beside
// those that step.py has of PyTorch. scripts/bench-step.sh runs them all.
//
//	step batches FILE                    what all of them begin with and train on
//	step ringtrain|gorgonia MODEL FILE [STEPS]
//	step table [-csv FILE] [-require LIST] [-note TEXT]... DIR
//
// MODEL is mlp, which examples/mnist.cfg trains, or convnet, which
// examples/convnet.cfg does. The second form writes one JSON object. DIR of the third has them as MODEL-ROUND-PROGRAM.json;
// the table is Markdown, on stdout. It exits with 1 if something broke, if losses
// do not fall alike, or if a ratio is less than asked for.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
)

// A usageError is what is wrong about a command line.
type usageError string

// Error implements error.
func (e usageError) Error() string { return string(e) }

// errUsage is of a command line that makes no sense at all.
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

// measure times the steps of one program that is written in Go.
func measure(args []string, stdout io.Writer) error {
	steps := 300
	if len(args) == 4 {
		var err error
		if steps, err = strconv.Atoi(args[3]); err != nil || steps < 1 {
			return usageError(fmt.Sprintf("%q is no number of steps", args[3]))
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

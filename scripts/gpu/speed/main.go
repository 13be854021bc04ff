// Command speed times training steps of nn/gpu on device 0, alternating with PyTorch's, and
// writes both as Markdown tables.
//
//	speed [-quick] [-limit TIME] [COMMAND...]
//
// COMMAND starts scripts/gpu/baselines.py with a Python that has PyTorch. Without it only our
// steps are timed. The exit code is 0 if everything was measured and, compared with PyTorch,
// all goals are met; otherwise it is 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/ringtrain/ringtrain/cuda"
)

func main() {
	quick := flag.Bool("quick", false, "few steps of small networks, for a trial on the emulator; no goals")
	limit := flag.Duration("limit", 10*time.Minute, "stop measuring after this time, and write the results so far")
	flag.Parse()
	ctx, cancel := context.WithTimeoutCause(context.Background(), *limit, errors.New("-limit is over"))
	err := run(ctx, os.Stdout, flag.Args(), *quick)
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "speed:", err)
		os.Exit(1)
	}
}

// errMissed is returned when a goal is not met.
var errMissed = errors.New("a goal is not met")

// run measures the small networks first. After a failure it writes the results so far.
func run(ctx context.Context, w io.Writer, command []string, quick bool) (err error) {
	if err := cuda.Available(); err != nil {
		return err
	}
	c := &course{table: &table{}, clock: clock{warmup: 40, steps: 200, rounds: 7}}
	rows, width := 128, 4096
	if quick {
		c.clock, rows, width = clock{warmup: 1, steps: 2, rounds: 1}, 8, 64
	}
	if len(command) > 0 {
		if c.torch, err = openTorch(ctx, command); err != nil {
			c.torch, err = nil, fmt.Errorf("PyTorch: %w", err) // our steps are measured anyway
		} else {
			defer func() { err = errors.Join(err, c.torch.close()) }()
			c.table.Torch = c.torch.version
		}
	}
	err = errors.Join(err, c.small(ctx, rows))
	c.table.write(w, c.clock.rounds, rows)
	c.clock.warmup, c.clock.steps = min(c.clock.warmup, 5), min(c.clock.steps, 10)
	bounds, failure := c.square(ctx, width)
	if failure == nil {
		writeSquare(w, c.table, bounds, width)
	}
	err = errors.Join(err, failure)
	c.table.writeNotes(w)
	if len(command) > 0 && !quick && !writeGoals(w, c.table, bounds) {
		err = errors.Join(err, errMissed)
	}
	return err
}

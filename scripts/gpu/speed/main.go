// Command speed times training steps of nn/gpu on device 0: those of
// scripts/gpu/baselines.py, which times PyTorch's, whose results it takes to set
// the two side by side. It writes Markdown.
//
//	speed [-torch FILE] [-quick]
//
// Exit code: 0 all was measured and, beside PyTorch, all goals are met; 1 not.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/ringtrain/ringtrain/cuda"
)

func main() {
	torch := flag.String("torch", "", "what baselines.py --json has written; without it there are no ratios")
	quick := flag.Bool("quick", false, "few steps of small networks, for a trial on a slow stand-in; no goals")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *torch, *quick); err != nil {
		fmt.Fprintln(os.Stderr, "speed:", err)
		os.Exit(1)
	}
}

// errMissed is returned when a goal is not met.
var errMissed = errors.New("a goal is not met")

func run(ctx context.Context, w io.Writer, torch string, quick bool) error {
	if err := cuda.Available(); err != nil {
		return err
	}
	var t *table
	var err error
	if torch != "" {
		if t, err = readTable(torch); err != nil {
			return err
		}
	}
	ours := &table{}
	s, rows, width := clock{warmup: 20, steps: 200, rounds: 5}, 128, 4096
	if quick {
		s, rows, width = clock{warmup: 1, steps: 2, rounds: 1}, 8, 64
	}
	if err := steps(ctx, ours, s, rows); err != nil {
		return err
	}
	s.warmup, s.steps = min(s.warmup, 5), min(s.steps, 10)
	bounds, err := square(ctx, ours, s, width)
	if err != nil {
		return err
	}
	ours.write(w, t, s.rounds, rows)
	writeSquare(w, ours, t, bounds, width)
	if t != nil && !quick && !writeGoals(w, ours, t, bounds) {
		return errMissed
	}
	return nil
}

// Command distributed_sgd trains a small residual network on several workers with several
// devices each, step by step, as the documentation of Ray's DistributedSGD does.
//
//	go run ./examples/distributed_sgd
//	go run ./examples/distributed_sgd --data cifar:DIR --steps 500 --out model.safetensors
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/sgd"
)

// settings are the flags.
type settings struct {
	workers, devices, steps, batch int
	seed                           uint64
	data, out, trace               string
	verbose, fixed, processes      bool
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run returns the exit code: 0, 1 for a failure, 2 for a mistake of the user.
func run(args []string, stdout, stderr io.Writer) int {
	c, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return 2
	}
	p, err := crew.ThisProcess()
	if err == nil {
		err = c.options().Check()
	}
	switch {
	case err != nil:
		err = crew.Usage(err)
	case c.processes:
		err = c.inProcesses(p, args, stdout, stderr)
	default:
		ctx, stop := signal.NotifyContext(context.Background(), crew.StopSignals()...)
		defer stop()
		err = c.inProcess(ctx, stdout)
	}
	var mistake *crew.UsageError
	var end *crew.EndError
	switch {
	case err == nil:
		return 0
	case errors.As(crew.Explain(stderr, err), &mistake), errors.As(err, &end) && end.Usage:
		return 2
	}
	return 1
}

// parse reads the flags.
func parse(args []string, stderr io.Writer) (*settings, error) {
	c := &settings{}
	f := flag.NewFlagSet("distributed_sgd", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.IntVar(&c.workers, "workers", 2, "number of workers")
	f.IntVar(&c.devices, "devices", 2, "replicas of the network in each worker")
	f.IntVar(&c.steps, "steps", 100, "steps to train")
	f.IntVar(&c.batch, "batch", 16, "rows per device and step")
	f.Uint64Var(&c.seed, "seed", 0, "seed of weights, rows and generated images")
	f.StringVar(&c.data, "data", "generated", "`SOURCE` of images: generated or cifar:DIR (CIFAR-10, binary version)")
	f.BoolVar(&c.fixed, "fixed", false, "give each device the same rows in every step")
	f.BoolVar(&c.verbose, "verbose", true, "print how long the stages of each step take")
	f.StringVar(&c.trace, "trace", "", "write a Chrome trace with a row for each worker to `FILE`")
	f.StringVar(&c.out, "out", "", "write the trained weights to `FILE`, in safetensors")
	f.BoolVar(&c.processes, "processes", false, "give each device a process of its own")
	err := f.Parse(args)
	if err == nil && f.NArg() > 0 {
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
		fmt.Fprintln(stderr, err)
	}
	return c, err
}

// options returns the Options without the log and the trace.
func (c *settings) options() sgd.Options {
	return sgd.Options{Workers: c.workers, Devices: c.devices, Seed: c.seed}
}

// observed returns the Options of a run that prints to stdout. The caller calls close
// in the end.
func (c *settings) observed(stdout io.Writer) (o sgd.Options, close func() error, err error) {
	o = c.options()
	if c.verbose {
		o.Verbose = stdout
	}
	if c.trace == "" {
		return o, func() error { return nil }, nil
	}
	file, err := os.Create(c.trace)
	if err != nil {
		return o, nil, crew.Usage(err)
	}
	o.Trace = file
	return o, file.Close, nil
}

// inProcess trains with all workers in this process.
func (c *settings) inProcess(ctx context.Context, stdout io.Writer) error {
	create, err := c.creator()
	if err != nil {
		return crew.Usage(err)
	}
	o, closeTrace, err := c.observed(stdout)
	if err != nil {
		return err
	}
	s, err := sgd.New(ctx, create, o)
	if err != nil {
		return errors.Join(err, closeTrace())
	}
	err = c.train(ctx, s, stdout)
	return errors.Join(err, s.Close(), closeTrace())
}

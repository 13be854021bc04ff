package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// measureScaling is the launcher's part.
func (a *app) measureScaling(ctx context.Context, f scalingFlags, signals chan os.Signal) (err error) {
	path, remove, err := f.configFile()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	most := slices.Max(f.workers)
	s, err := a.settle(path, f.training(f.systems()[0], most))
	if err != nil {
		return err
	}
	if _, err := crew.FindKey(f.keyFile); err != nil {
		return usage(err)
	}
	drop, err := prepareFiles(f.out)
	if err != nil {
		return usage(err)
	}
	defer func() {
		if err != nil {
			drop()
		}
	}()
	if f.out != "" {
		release, err := lockDirs([]flagDir{{"--out", f.out}}, launch.LockOptions{Job: crew.OwnCluster(), Force: f.force})
		if err != nil {
			return usage(err)
		}
		defer release()
	}
	if _, err := a.openUnder(ctx, s.source, signals); err != nil {
		return err
	}
	r := &scalingRun{app: a, flags: f, config: path, signals: signals, report: bench.Scaling{
		Command: a.command(), Date: time.Now().Format(time.DateOnly), Compute: f.compute, Steps: f.steps, Batch: s.batch, Published: f.published,
	}}
	host, _ := os.Hostname()
	r.report.Host = fmt.Sprintf("%s (%d processors, %s/%s)", cmp.Or(host, "host"), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH)
	done, err := r.links(ctx, most)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if err := r.all(ctx); err != nil {
		return err
	}
	if err := r.report.Text(a.stdout); err != nil {
		return err
	}
	return r.write(f.out)
}

// A scalingRun is all trials of one command.
type scalingRun struct {
	app     *app
	flags   scalingFlags
	config  string // file
	key     string // file, "" for none
	network *launch.Network
	signals chan os.Signal
	report  bench.Scaling
}

// links makes the network that the workers are to have, and its key. done takes
// both away.
func (r *scalingRun) links(ctx context.Context, nodes int) (done func() error, err error) {
	f := &r.flags
	if r.key, err = crew.FindKey(f.keyFile); err != nil {
		return nil, usage(err)
	}
	r.report.Where = "workers on one machine, " + tlsText(r.key)
	if f.chosen() == cluster.TransportTCP {
		r.report.Where = "workers on one machine, over loopback, " + tlsText(r.key)
	}
	if f.hosts != "netns" {
		return func() error { return nil }, nil
	}
	if f.insecure {
		r.key = ""
	}
	var o launch.NetworkOptions
	if f.link != "" {
		if o.Link, err = launch.ParseRate(f.link); err != nil {
			return nil, usage(err)
		}
	}
	r.network, err = launch.Namespaces(ctx, nodes, o)
	switch {
	case errors.Is(err, launch.ErrNoNamespaces):
		return nil, usagef("--hosts netns: %w", err)
	case err != nil:
		return nil, err
	}
	done = r.network.Close
	if r.key == "" && !f.insecure {
		var remove func() error
		if r.key, remove, err = temporaryKey(); err != nil {
			return nil, errors.Join(err, done())
		}
		done = func() error { return errors.Join(r.network.Close(), remove()) }
	}
	r.report.Where = fmt.Sprintf("each worker in a network namespace of one machine, %s each way, %s", cmp.Or(f.link, "no limit"), tlsText(r.key))
	return done, nil
}

func tlsText(keyFile string) string {
	if keyFile == "" {
		return "no TLS"
	}
	return "TLS 1.3"
}

// all runs the trials, one of each kind after the other, so that what happens
// to the machine meanwhile happens to all kinds.
func (r *scalingRun) all(ctx context.Context) error {
	for trial := 1; trial <= r.flags.trials; trial++ {
		for _, n := range r.flags.workers {
			for _, system := range r.flags.systems() {
				name := fmt.Sprintf("trial %d of %d, %s, workers %d", trial, r.flags.trials, system, n)
				t, err := r.one(ctx, system, n)
				if err != nil {
					return named(name, err)
				}
				t.Trial = trial
				r.report.Trials = append(r.report.Trials, t)
				fmt.Fprintf(r.app.stderr, "%s: %.2f s, %.2f ms/step\n", name, t.Seconds, 1000*t.Seconds/float64(t.Steps))
			}
		}
	}
	return nil
}

// named puts a name before an error, and keeps the exit code that it means.
func named(name string, err error) error {
	var end *crew.EndError
	var wrong *crew.UsageError
	switch {
	case errors.As(err, &end) && end.Err == nil:
		return &codedError{exitCode(end), fmt.Errorf("%s: stopped", name)}
	case errors.As(err, &end):
		return &codedError{exitCode(end), fmt.Errorf("%s: %w", name, end.Err)}
	case errors.As(err, &wrong):
		return usagef("%s: %w", name, wrong.Err)
	}
	return fmt.Errorf("%s: %w", name, err)
}

// one is one trial.
func (r *scalingRun) one(ctx context.Context, system string, workers int) (bench.Trial, error) {
	f := r.flags
	at := crew.Place{Nodes: 1, KeyFile: f.keyFile, Transport: f.chosen()}
	place, err := at.Config(workers, r.app.stderr)
	if err != nil {
		return bench.Trial{}, usage(err)
	}
	if r.network != nil {
		place = cluster.Config{Cluster: crew.OwnCluster(), Nodes: 1, Node: cluster.NodeName(), LocalSize: workers, Transport: f.chosen(), KeyFile: r.key, Insecure: r.key == ""}
	}
	show := &scalingScreen{err: r.app.stderr, network: r.network}
	c := r.app.crew(place, workers, show, r.signals)
	c.Network, c.Threads, c.Stopping = r.network, trainThreads, "stopping after this step; once more to stop at once"
	c.Args = append(slices.Clone(r.app.args), "--config", r.config, "--system", system) // what differs
	if err := c.Launch(ctx); err != nil {
		return bench.Trial{}, err
	}
	measured, err := show.end()
	if err != nil {
		return bench.Trial{}, err
	}
	r.report.Params = measured.Params
	t := measured.Trial
	t.System = system
	if r.network != nil {
		if err := t.CheckWire(); err != nil {
			return t, err
		}
	}
	return t, nil
}

// A scalingFile is one file of --out.
type scalingFile struct {
	name  string
	write func(bench.Scaling, io.Writer) error
}

func scalingFiles() []scalingFile {
	files := []scalingFile{
		{"table.md", bench.Scaling.Markdown},
		{"scaling.json", bench.Scaling.WriteJSON},
		{"scaling.csv", bench.Scaling.WriteCSV},
	}
	for _, name := range bench.ScalingPlots() {
		for _, format := range []string{"png", "svg"} {
			files = append(files, scalingFile{name + "." + format, func(s bench.Scaling, w io.Writer) error { return s.Plot(w, format, name) }})
		}
	}
	return files
}

// prepareFiles makes the directory of --out and finds what would keep the files
// from being written, before an hour of measurements is lost to it. drop takes
// the directory away again if it was made here and is empty.
func prepareFiles(dir string) (drop func(), err error) {
	_, missing := os.Stat(dir)
	if err := prepareOut(dir); err != nil {
		return nil, err
	}
	for _, f := range scalingFiles() {
		path := filepath.Join(dir, f.name)
		if info, err := os.Stat(path); dir != "" && err == nil && info.IsDir() {
			return nil, fmt.Errorf("--out: %s is a directory, and a file is to be written there", path)
		}
	}
	return func() {
		if dir != "" && missing != nil {
			_ = os.Remove(dir) // what is not empty stays
		}
	}, nil
}

// write writes the files of --out.
func (r *scalingRun) write(dir string) error {
	if dir == "" {
		return nil
	}
	var errs []error
	for _, f := range scalingFiles() {
		errs = append(errs, writeTo(filepath.Join(dir, f.name), func(w io.Writer) error { return f.write(r.report, w) }))
	}
	return errors.Join(errs...)
}

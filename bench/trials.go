package bench

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
	"strings"
	"time"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// A ScalingRun trains with several numbers of workers in turn, several times, and
// reports how long that takes.
type ScalingRun struct {
	Catalog   *catalog.Catalog
	Config    string            // path of a config; "" for that of a small network
	Overrides []config.Override // of values in it
	Data      string            // see job.Spec
	Options   catalog.Options   // of Data

	Workers []int  // worker counts; must include 1
	Trials  int    // per worker count
	Steps   int    // per trial
	System  string // strategies, separated by commas; in a worker, one

	Hosts     string       // "local" or Namespaces
	Link      string       // rate of each link with Namespaces; "" for no limit
	Transport string       // as in job.Spec, except inproc
	KeyFile   string       // encrypts all traffic; "" for that of the environment
	Insecure  bool         // with Namespaces, encrypt nothing
	Process   crew.Process // that runs it
	Compute   Compute
	Evaluate  bool // evaluate as the config says

	Out       string // directory of tables and plots; "" for none
	Force     bool   // break the lock of a job on another machine
	Published bool   // add the published figures of other programs
}

// Compute says how the workers of a ScalingRun compute.
type Compute struct {
	Flag string        // --compute, for the table
	Took time.Duration // emulated compute per step; 0 for real compute
}

// Launch runs all trials and reports them to o.Stdout, and progress to o.Stderr. The
// workers of a trial have the arguments that args returns for the path of their config
// and their system; the program then calls Work.
func (f *ScalingRun) Launch(ctx context.Context, o job.Options, args func(config, system string) []string) (err error) {
	o = o.WithDefaults()
	path, remove, err := f.configFile()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	most := slices.Max(f.Workers)
	s, err := f.training(path, f.Systems()[0], most).Settle()
	if err != nil {
		return err
	}
	if _, err := crew.FindKey(f.KeyFile); err != nil {
		return crew.Usage(err)
	}
	drop, err := prepareFiles(f.Out)
	if err != nil {
		return crew.Usage(err)
	}
	defer func() {
		if err != nil {
			drop()
		}
	}()
	if f.Out != "" {
		release, err := job.LockDirs([]job.Dir{{Flag: "--out", Path: f.Out}}, launch.LockOptions{Job: crew.OwnCluster(), Force: f.Force})
		if err != nil {
			return crew.Usage(err)
		}
		defer release()
	}
	if _, err := s.Open(ctx, o); err != nil {
		return err
	}
	r := &trials{ScalingRun: f, options: o, args: args, config: path, report: Scaling{
		Command: o.Command, Date: time.Now().Format(time.DateOnly), Compute: f.Compute.Flag, Steps: f.Steps, Batch: s.Batch, Published: f.Published,
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
	if err := r.report.Text(o.Stdout); err != nil {
		return err
	}
	return r.write(f.Out)
}

// trials runs the trials of one ScalingRun.
type trials struct {
	*ScalingRun
	options job.Options
	args    func(config, system string) []string
	config  string // file
	key     string // file, "" for none
	network *launch.Network
	report  Scaling
}

// Systems returns the names in System.
func (f *ScalingRun) Systems() []string { return strings.Split(f.System, ",") }

// transport is the --transport of workers. Namespaces stand for machines, so workers in
// them must not share memory.
func (f *ScalingRun) transport() string {
	if f.Hosts == Namespaces {
		return cluster.TransportTCP
	}
	return f.Transport
}

// training describes one training by this many workers. A system is a strategy.
func (f *ScalingRun) training(path, system string, workers int) job.Spec {
	return job.Spec{
		Catalog: f.Catalog, Config: path, Overrides: f.Overrides, Data: f.Data, Options: f.Options, Workers: workers, Steps: f.Steps, Strategy: system,
		Watch: job.Watch{LogLevel: "error"}, Place: crew.Place{Nodes: 1, KeyFile: f.KeyFile, Insecure: f.Insecure, Transport: f.transport()},
	}
}

// links makes the workers' network and its key. done removes both.
func (r *trials) links(ctx context.Context, nodes int) (done func() error, err error) {
	f := r.ScalingRun
	if r.key, err = crew.FindKey(f.KeyFile); err != nil {
		return nil, crew.Usage(err)
	}
	r.report.Where = "workers on one machine, " + tlsText(r.key)
	if f.transport() == cluster.TransportTCP {
		r.report.Where = "workers on one machine, over loopback, " + tlsText(r.key)
	}
	if f.Hosts != Namespaces {
		return func() error { return nil }, nil
	}
	if f.Insecure {
		r.key = ""
	}
	var o launch.NetworkOptions
	if f.Link != "" {
		if o.Link, err = launch.ParseRate(f.Link); err != nil {
			return nil, crew.Usagef("--link: %w", err)
		}
	}
	r.network, err = launch.Namespaces(ctx, nodes, o)
	switch {
	case errors.Is(err, launch.ErrNoNamespaces):
		return nil, crew.Usagef("--hosts netns: %w", err)
	case err != nil:
		return nil, err
	}
	done = r.network.Close
	if r.key == "" && !f.Insecure {
		var remove func() error
		if r.key, remove, err = temporaryKey(); err != nil {
			return nil, errors.Join(err, done())
		}
		done = func() error { return errors.Join(r.network.Close(), remove()) }
	}
	r.report.Where = fmt.Sprintf("each worker in a network namespace of one machine, %s each way, %s", cmp.Or(f.Link, "no limit"), tlsText(r.key))
	return done, nil
}

func tlsText(keyFile string) string {
	if keyFile == "" {
		return "no TLS"
	}
	return "TLS 1.3"
}

// all alternates between the kinds of trials, so that slow periods of the machine
// affect all kinds.
func (r *trials) all(ctx context.Context) error {
	for trial := 1; trial <= r.Trials; trial++ {
		for _, n := range r.Workers {
			for _, system := range r.Systems() {
				name := fmt.Sprintf("trial %d of %d, %s, workers %d", trial, r.Trials, system, n)
				t, err := r.one(ctx, system, n)
				if err != nil {
					return &TrialError{name, err}
				}
				t.Trial = trial
				r.report.Trials = append(r.report.Trials, t)
				fmt.Fprintf(r.options.Stderr, "%s: %.2f s, %.2f ms/step\n", name, t.Seconds, 1000*t.Seconds/float64(t.Steps))
			}
		}
	}
	return nil
}

// A TrialError names the trial that failed.
type TrialError struct {
	Trial string // such as "trial 1 of 3, allreduce, workers 2"
	Err   error  // a *crew.EndError without Err if it was stopped
}

// Error is one line.
func (e *TrialError) Error() string {
	var end *crew.EndError
	var wrong *crew.UsageError
	switch {
	case errors.As(e.Err, &end) && end.Err == nil:
		return e.Trial + ": stopped"
	case errors.As(e.Err, &end):
		return fmt.Sprintf("%s: %v", e.Trial, end.Err)
	case errors.As(e.Err, &wrong):
		return fmt.Sprintf("%s: %v", e.Trial, wrong)
	}
	return fmt.Sprintf("%s: %v", e.Trial, e.Err)
}

// Unwrap returns Err.
func (e *TrialError) Unwrap() error { return e.Err }

// one runs one trial.
func (r *trials) one(ctx context.Context, system string, workers int) (Trial, error) {
	f := r.ScalingRun
	at := crew.Place{Nodes: 1, KeyFile: f.KeyFile, Transport: f.transport(), Process: f.Process}
	place, err := at.Config(workers, r.options.Stderr)
	if err != nil {
		return Trial{}, crew.Usage(err)
	}
	if r.network != nil {
		place = cluster.Config{Cluster: crew.OwnCluster(), Nodes: 1, Node: cluster.NodeName(), LocalSize: workers, Transport: f.transport(), KeyFile: r.key, Insecure: r.key == ""}
	}
	show := &trialDisplay{err: r.options.Stderr, network: r.network}
	o := r.options
	o.Display, o.Args = show, r.args(r.config, system)
	c := crewAt(place, workers, f.Process, o)
	c.Network, c.Threads, c.Stopping = r.network, job.Threads, "stopping after this step; once more to stop at once"
	if err := c.Launch(ctx); err != nil {
		return Trial{}, err
	}
	measured, err := show.end()
	if err != nil {
		return Trial{}, err
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
	write func(Scaling, io.Writer) error
}

func scalingFiles() []scalingFile {
	files := []scalingFile{
		{"table.md", Scaling.Markdown},
		{"scaling.json", Scaling.WriteJSON},
		{"scaling.csv", Scaling.WriteCSV},
	}
	for _, name := range ScalingPlots() {
		for _, format := range []string{"png", "svg"} {
			files = append(files, scalingFile{name + "." + format, func(s Scaling, w io.Writer) error { return s.Plot(w, format, name) }})
		}
	}
	return files
}

// prepareFiles creates the directory of --out and checks that the files can be written,
// before an hour of measurements is lost. drop removes the directory again if
// prepareFiles created it and it is empty.
func prepareFiles(dir string) (drop func(), err error) {
	_, missing := os.Stat(dir)
	if err := job.PrepareDir(dir); err != nil {
		return nil, err
	}
	for _, f := range scalingFiles() {
		path := filepath.Join(dir, f.name)
		if info, err := os.Stat(path); dir != "" && err == nil && info.IsDir() {
			return nil, fmt.Errorf("--out: %s is a directory, but the name of a file to write; remove it or choose another directory", path)
		}
	}
	return func() {
		if dir != "" && missing != nil {
			_ = os.Remove(dir) // fails if it is not empty
		}
	}, nil
}

// write writes all files of --out.
func (r *trials) write(dir string) error {
	if dir == "" {
		return nil
	}
	var errs []error
	for _, f := range scalingFiles() {
		errs = append(errs, WriteTo(filepath.Join(dir, f.name), func(w io.Writer) error { return f.write(r.report, w) }))
	}
	return errors.Join(errs...)
}

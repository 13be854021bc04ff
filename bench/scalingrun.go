package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
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
	System  string // names of Systems, separated by commas; in a worker, one

	Hosts     string       // "local" or Namespaces
	Link      string       // rate of each link with Namespaces; "" for no limit
	Sparse    string       // as in job.Gradients
	Transport string       // as in job.Spec, except inproc
	KeyFile   string       // encrypts all traffic; "" for that of the environment
	Insecure  bool         // with Namespaces, encrypt nothing
	Process   crew.Process // that runs it
	Compute   Compute
	Evaluate  bool // evaluate as the config says

	Outputs
}

// Outputs says what a ScalingRun writes.
type Outputs struct {
	Out       string // directory of tables and plots; "" for none
	Force     bool   // break the lock of a job on another machine
	Published bool   // add the published figures of other programs
}

// Compute says how the workers of a ScalingRun compute.
type Compute struct {
	Flag string        // --compute, for the table
	Took time.Duration // emulated compute per step; 0 for real compute
	// InnerSteps are those that a worker computes alone, with local-sgd and diloco.
	InnerSteps int
}

// Launch runs all trials and reports them to o.Stdout, and progress to o.Stderr. The
// workers of a trial have the arguments that args returns for the path of their config
// and their system; the program then calls Work.
func (f *ScalingRun) Launch(ctx context.Context, o job.Options, args func(config, system string) []string) (err error) {
	o = o.WithDefaults()
	r := &trials{ScalingRun: f, options: o, args: args}
	var plan networkPlan
	if err := f.Check(); err != nil {
		return crew.Usage(err)
	}
	if plan, err = planNetwork(f.KeyFile, f.Insecure, f.Link); err != nil {
		return crew.Usage(err)
	}
	path, remove, err := f.configFile()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	most := slices.Max(f.Workers)
	var s *job.Training
	for _, system := range f.Systems() {
		if s, err = f.training(path, system, most).Settle(); err != nil {
			return err
		}
	}
	release, err := f.claimOut()
	if err != nil {
		return crew.Usage(err)
	}
	defer release()
	if _, err := s.Open(ctx, o); err != nil {
		return err
	}
	r.config, r.key = path, plan.key
	if f.Hosts == Namespaces {
		var done func() error
		if r.network, r.key, done, err = plan.open(ctx, most+f.mostServers()); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, done()) }()
	}
	report := f.report(o.Command, s, r.key != "")
	all := series{trials: f.Trials, workers: f.Workers, systems: f.Systems(), train: r.train, news: o.Stderr}
	if err := all.run(ctx, &report); err != nil {
		return err
	}
	if err := report.Text(o.Stdout); err != nil {
		return err
	}
	return report.writeFiles(f.Out)
}

// report returns a report without trials.
func (f *ScalingRun) report(command string, s *job.Training, secured bool) Scaling {
	host, _ := os.Hostname()
	report := Scaling{
		Command: command, Date: time.Now().Format(time.DateOnly), Where: f.where(secured), Compute: f.Compute.Flag, Steps: f.Steps, Batch: s.Batch, Published: f.Published,
		Link: f.Link, Processors: runtime.NumCPU(), InnerSteps: f.Compute.InnerSteps,
		Host: fmt.Sprintf("%s (%d processors, %s/%s)", cmp.Or(host, "host"), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH),
	}
	if c := s.Compression; c.Form != trainer.Exact {
		report.Compress = c.String()
	}
	return report
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

// mostServers returns the largest number of server processes of a system.
func (f *ScalingRun) mostServers() int {
	most := 0
	for _, system := range f.Systems() {
		s := f.training("", system, 1)
		most = max(most, s.ServerProcesses())
	}
	return most
}

// training describes one run by this many workers.
func (f *ScalingRun) training(path, system string, workers int) job.Spec {
	s := systemOf(system)
	g := s.gradients()
	g.Rounds, g.Sparse = trainer.DiLoCo(f.Compute.InnerSteps), f.Sparse
	return job.Spec{
		Catalog: f.Catalog, Config: path, Overrides: f.Overrides, Data: f.Data, Options: f.Options, Workers: workers, Steps: f.Steps, Strategy: s.strategy,
		Gradients: g,
		Watch:     job.Watch{LogLevel: "error"}, Place: crew.Place{Nodes: 1, KeyFile: f.KeyFile, Insecure: f.Insecure, Transport: f.transport()},
	}
}

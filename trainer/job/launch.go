package job

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/device"
)

// Options say how a job is shown and stopped. Nothing in them changes what is trained.
type Options struct {
	Display  crew.Display     // shows the job
	Verbatim bool             // show every event about a lost rank at once, not one line at the end
	Signals  <-chan os.Signal // the first stops the job after the step in progress, the second at once; may be nil
	Stdout   io.Writer        // receives a worker's events; leave it os.Stdout there
	Stderr   io.Writer        // receives warnings, and a worker's log lines
	Cache    *Cache           // of generated data; may be nil
	Args     []string         // arguments of workers, without the program's name
	Command  string           // the command line as a user would type it, for the list of jobs
}

// Launch starts the workers of this machine, shows what they say, and waits for them.
// With crew.TransportInProcess it runs all ranks in this process instead. The error is a
// *crew.UsageError if Launch found a mistake before anything started, and a
// *crew.EndError if the job failed later.
func (s *Training) Launch(ctx context.Context, o Options) error {
	o = o.WithDefaults()
	f := &s.Spec
	alone := f.Alone()
	if alone {
		f.Place.Cluster = cmp.Or(f.Place.Cluster, crew.OwnCluster())
	}
	inProcess := f.Place.Transport == crew.TransportInProcess
	if !inProcess {
		if _, err := crew.FindKey(f.Place.KeyFile); err != nil { // before data is generated
			return crew.Usage(err)
		}
	}
	for _, wrong := range []error{f.Saving.checkResumeDir(f.Place.Nodes), f.Order.CheckTable(s.AllWorkers(), f.Place.Nodes), f.Watch.checkMetrics(s.Workers, f.Place.Process)} {
		if wrong != nil {
			return crew.Usage(wrong)
		}
	}
	release, err := f.Saving.claimDirs(f.Place.Cluster, alone)
	if err != nil {
		return crew.Usage(err)
	}
	defer release()
	if err := PrepareDir(f.Watch.Trace); err != nil {
		return crew.Usagef("--trace %s: %w", f.Watch.Trace, err)
	}
	if s.Placement.OnGPU() {
		o.Cache.Prepare("") // for compiled kernels
	}
	for _, w := range s.Dataset.Info().Warnings {
		fmt.Fprintf(o.Stderr, "ringtrain: warning: %s\n", w)
	}
	rows, err := s.Open(ctx, o)
	if err != nil {
		return err
	}
	if err := s.checkResume(rows, o.Stderr); err != nil {
		return crew.Usage(err)
	}
	if err := checkInit(s, rows, o.Stderr); err != nil {
		return crew.Usage(err)
	}
	if err := checkTarget(s, rows); err != nil {
		return crew.Usage(err)
	}
	if inProcess {
		return s.trainInProcess(ctx, rows, o)
	}
	return s.launchWorkers(ctx, o)
}

// launchWorkers starts the workers of this machine and waits for them.
func (s *Training) launchWorkers(ctx context.Context, o Options) error {
	servers := serversHere(&s.Spec)
	place, err := s.Spec.Place.Config(s.Workers+servers, o.Stderr)
	if err != nil {
		return crew.Usage(err)
	}
	dir, release, err := claimServerDir(&s.Spec)
	if err != nil {
		return crew.Usage(err)
	}
	defer release()
	environ := Environ(place, s.Placement, o.Cache)
	c := crew.Crew{
		Workers: s.Workers, Servers: servers, Restarts: restarts(&s.Spec), Survive: survives(&s.Spec), Cores: s.Cores, Place: place,
		Environ: func(local int) []string { return append(environ(local), envServerDir+"="+dir) },
		Process: s.Spec.Place.Process, Args: o.Args, Display: o.Display, Signals: o.Signals,
		Command: o.Command, Out: absolute(s.Spec.Saving.Dir), Announce: true, Verbatim: o.Verbatim,
		Stopping: "stopping after this step; once more to stop at once",
	}
	return c.Launch(ctx)
}

// Environ returns the environment variables of workers that do not concern their place.
func Environ(place cluster.Config, p device.Placement, cache *Cache) func(local int) []string {
	return func(local int) []string {
		return append(p.Environ(place.Node, local, place.Nodes < 2), cache.Environ()...)
	}
}

// Open reads the rows. It generates them first if necessary, and stops if a signal
// comes. A launcher opens them before it starts workers, so that workers find them
// complete.
func (s *Training) Open(ctx context.Context, o Options) (catalog.Rows, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	forced := make(chan struct{})
	watch := crew.WatchSignals(o.Signals, cancel, sync.OnceFunc(func() { close(forced) }))
	if cache := s.Dataset.Info().Cache; cache != "" {
		o.Cache.Prepare(cache)
	}
	var rows catalog.Rows
	opened := make(chan error, 1)
	go func() {
		var err error
		rows, err = s.Problem.Open(ctx)
		opened <- err
	}()
	var err error
	select {
	case err = <-opened:
	case <-forced: // the goroutine ends with the process
		return nil, &crew.EndError{Signal: watch.End()}
	}
	if sig := watch.End(); sig != nil {
		return nil, &crew.EndError{Signal: sig}
	}
	if err != nil {
		return nil, crew.Usage(err)
	}
	return rows, nil
}

// absolute returns the absolute form of a path, so that programs in other directories can
// use it. "" stays "".
func absolute(path string) string {
	if path == "" {
		return ""
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return full
}

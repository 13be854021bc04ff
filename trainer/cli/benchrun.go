package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/schedule"
	"github.com/ringtrain/ringtrain/collective/secret"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// bench is the whole of "bench collective", as launcher or as worker.
func (a *app) bench(ctx context.Context, s bench.Spec, f benchFlags) error {
	return a.run(ctx, func(ctx context.Context) error { return a.launchBench(ctx, s, f) },
		func(_ context.Context, w *worker) error { return w.bench(s, &f) })
}

// launchBench is the launcher's part.
func (a *app) launchBench(ctx context.Context, s bench.Spec, f benchFlags) (err error) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, crew.StopSignals()...)
	defer signal.Stop(signals)
	show := &benchScreen{out: a.stdout, err: a.stderr, spec: s, transport: f.chosen(), away: a.process.Follows()}
	switch {
	case f.Transport == "inproc":
		err = a.inProcess(ctx, f.ranks, f.HostOrder(), signals, func(ctx context.Context, g *collective.Group) error {
			return benchRank(ctx, g, s, &f, false, crew.Quiet(show), g.Rank() == 0, onCPU(f.placement))
		})
	case f.hosts == "netns":
		err = a.benchNamespaces(ctx, f, show, signals)
	default:
		err = a.benchProcesses(ctx, f, show, signals)
	}
	if err != nil {
		return err
	}
	rows := show.end()
	if a.process.Follows() {
		return nil // the process of rank 0 has them
	}
	if err := f.files.write(bench.Records(rows, show.transport)); err != nil {
		return err
	}
	return allRight(rows)
}

// chosen is the transport that there will be, as far as can be told beforehand
// and on all machines alike; of several machines, the one between them.
func (f *benchFlags) chosen() string {
	together := f.Nodes == 1 && f.ranks > 1 && f.hosts != "netns" && runtime.GOOS == "linux"
	switch {
	case f.Transport != cluster.TransportAuto:
		return f.Transport
	case together:
		return cluster.TransportSHM
	}
	return cluster.TransportTCP
}

// benchProcesses measures between processes, of this machine or of several.
func (a *app) benchProcesses(ctx context.Context, f benchFlags, show *benchScreen, signals <-chan os.Signal) error {
	place, err := f.Config(f.ranks, a.stderr)
	if err != nil {
		return usage(err)
	}
	show.node, show.about = place.Node, f.about(place.KeyFile)
	c := a.crew(place, f.ranks, show, signals)
	c.Announce, c.Environ = f.First(), a.environ(place, f.placement)
	return c.Launch(ctx)
}

// benchNamespaces measures between processes of this machine each of which has
// a network namespace of its own.
func (a *app) benchNamespaces(ctx context.Context, f benchFlags, show *benchScreen, signals <-chan os.Signal) (err error) {
	place := cluster.Config{Cluster: cmp.Or(f.Cluster, crew.OwnCluster()), Nodes: 1, Node: cluster.NodeName(), LocalSize: f.ranks, Transport: f.Transport, Streams: f.Streams}
	if f.KeyFile != "" || !f.Insecure {
		if place.KeyFile, err = crew.FindKey(f.KeyFile); err != nil {
			return usage(err)
		}
	}
	var o launch.NetworkOptions
	if f.link != "" {
		if o.Link, err = launch.ParseRate(f.link); err != nil {
			return usage(err)
		}
	}
	network, err := launch.Namespaces(ctx, f.ranks, o)
	switch {
	case errors.Is(err, launch.ErrNoNamespaces):
		return usagef("--hosts netns: %w", err)
	case err != nil:
		return err
	}
	defer func() { err = errors.Join(err, network.Close()) }()
	if place.KeyFile == "" && !f.Insecure {
		remove := func() error { return nil }
		if place.KeyFile, remove, err = temporaryKey(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, remove()) }()
	}
	place.Insecure = place.KeyFile == ""
	show.node, show.about = place.Node, f.about(place.KeyFile)
	c := a.crew(place, f.ranks, show, signals)
	c.Network, c.Environ = network, a.environ(place, f.placement)
	return c.Launch(ctx)
}

// about is what else a reader of the table should know of the links.
func (f *benchFlags) about(keyFile string) string {
	var parts []string
	if f.Transport == "auto" {
		parts = append(parts, "auto chose "+f.chosen())
	}
	if f.hosts == "netns" {
		parts = append(parts, "each rank in a network namespace, "+cmp.Or(f.link, "no limit")+" each way")
	}
	if keyFile != "" {
		parts = append(parts, "TLS 1.3")
	} else {
		parts = append(parts, "no TLS")
	}
	return "links: " + strings.Join(parts, "; ")
}

// temporaryKey is a new key in a file, and what removes both.
func temporaryKey() (path string, remove func() error, err error) {
	key, err := secret.New()
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "ringtrain-key-")
	if err != nil {
		return "", nil, err
	}
	path = filepath.Join(dir, "job.key")
	if err := secret.WriteFile(path, key); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return path, func() error { return os.RemoveAll(dir) }, nil
}

// allRight is an error where results were not what they should be.
func allRight(rows []bench.Row) error {
	wrong := int64(0)
	for _, r := range rows {
		wrong += r.Wrong()
	}
	if wrong > 0 {
		return fmt.Errorf("%d elements of results were wrong: the numbers above mean nothing", wrong)
	}
	return nil
}

// bench is one rank in a process of its own. When one is asked to stop, all
// do, and the launcher hears of it.
func (w *worker) bench(s bench.Spec, f *benchFlags) error {
	onHost := func(s bench.Spec, f *benchFlags) error {
		w.Place.Engine = engineOf(nil, f.Nodes)
		return w.measureWith(f.HostOrder(), f.JoinTimeout, func(ctx context.Context, g *collective.Group) error {
			if f.memory == memoryShared {
				s.Alloc = w.Alloc
			}
			return benchRank(ctx, g, s, f, w.Place.KeyFile != "", w.Events, w.Place.Local == 0, onCPU(f.placement))
		})
	}
	measure := onHost
	if f.placement.onGPU() {
		measure = w.benchOnGPU
	}
	err := measure(s, f)
	if err != nil && (w.Stop().Err() != nil || cancelled(err)) {
		w.Events.Emit(&event.Stopped{})
		return nil
	}
	return err
}

// prepare has the group use what --algorithm or --tune name.
func (f *benchFlags) prepare(ctx context.Context, g *collective.Group, secured bool, events event.Sink) error {
	if f.algorithm == "" {
		return f.Apply(ctx, g, secured, events)
	}
	m, err := schedule.ParseMethod(f.algorithm)
	if err != nil {
		return usage(fmt.Errorf("--algorithm: %w", err))
	}
	s := g.Situation()
	if can := s.Candidates(); !slices.Contains(can, m) {
		return usage(fmt.Errorf("--algorithm %v: these ranks cannot do it with --order %v; there are %v", m, f.HostOrder(), can))
	}
	return g.Tune(ctx, schedule.Only(g.Size(), m, schedule.SegmentBytes))
}

// inProcess runs all ranks of a measurement as goroutines of this process.
func (a *app) inProcess(ctx context.Context, ranks int, o collective.Order, signals <-chan os.Signal, run func(context.Context, *collective.Group) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watch := crew.WatchSignals(signals, func() {
		fmt.Fprintln(a.stderr, "stopping")
		cancel()
	}, func() {})
	views, transports := collective.Local(ranks)
	errs := make([]error, ranks)
	var all sync.WaitGroup
	for i := range ranks {
		all.Go(func() {
			g := collective.NewGroup(views[i], collective.OverTransport(views[i], transports[i]), collective.Options{Order: o})
			defer g.Close()
			errs[i] = run(ctx, g)
		})
	}
	all.Wait()
	if sig := watch.End(); sig != nil {
		return &crew.EndError{Signal: sig}
	}
	for _, err := range errs {
		var told *collective.ReportedError
		if err != nil && !errors.As(err, &told) {
			return err // of the rank that failed; the others name it
		}
	}
	return errors.Join(errs...)
}

// benchRank is one rank's part, in whatever process it runs. One rank of each
// machine tells, the teller.
func benchRank(ctx context.Context, g *collective.Group, s bench.Spec, f *benchFlags, secured bool, events event.Sink, teller bool, where site) error {
	if teller {
		view := event.NewView(g.View())
		where.fill(view)
		events.Emit(view)
		s.Each = func(r bench.Row) { events.Emit(&bench.RowMeasured{Row: r}) }
	}
	err := f.prepare(ctx, g, secured, events)
	if err == nil {
		_, err = bench.Run(ctx, g, s)
	}
	var differ *bench.SpecError
	if errors.As(err, &differ) {
		err = usage(err)
	}
	if err == nil || differ != nil {
		err = cmp.Or(err, g.Barrier(ctx)) // nobody leaves before the others have heard its last message
	}
	if err != nil && !cancelled(err) {
		crew.TellLost(events, g.Rank(), err)
	}
	return err
}

// cancelled reports whether a call failed because a rank, this one or another,
// was asked to stop.
func cancelled(err error) bool {
	var lost *collective.RankError
	return errors.As(err, &lost) && lost.Phase == "cancelled"
}

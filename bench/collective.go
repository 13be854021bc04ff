package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/schedule"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/device"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/job/tuned"
)

// The values of CollectiveRun.Memory.
const (
	Heap   = "heap"   // ordinary Go memory
	Shared = "shared" // ranks of one host read and write it in place, see cluster.Node.Alloc
)

// Namespaces is the value of CollectiveRun.Hosts that gives each rank its own network
// namespace.
const Namespaces = "netns"

// A CollectiveRun measures a collective operation between ranks over a range of sizes:
// processes on this machine or on several, processes in network namespaces, or
// goroutines of this process.
type CollectiveRun struct {
	Spec      Spec
	Ranks     int    // on this machine
	Algorithm string // of an allreduce, for all sizes; "" for the planned one
	Segment   int    // with Algorithm, maximum bytes of a message; 0 means schedule.SegmentBytes
	Memory    string // of the vectors on the host
	Hosts     string // "local" or Namespaces
	Link      string // rate of each link with Namespaces; "" for no limit
	Place     crew.Place
	Order     tuned.Choice
	Device    device.Choice
	Placement device.Placement // of the ranks of this machine, see CheckDevice

	// Placed is called before processes start, with the name of this machine and a
	// description of the links for the table. It may be nil.
	Placed func(node, about string)
}

// Transport returns the transport that the ranks will use, as far as it is known before
// they start: on several machines, the one between machines.
func (f *CollectiveRun) Transport() string {
	together := f.Place.Nodes == 1 && f.Ranks > 1 && f.Hosts != Namespaces && runtime.GOOS == "linux"
	switch {
	case f.Place.Transport != cluster.TransportAuto:
		return f.Place.Transport
	case together:
		return cluster.TransportSHM
	}
	return cluster.TransportTCP
}

// Launch starts the ranks of this machine and waits for them. The Display of o receives a
// RowMeasured for each size.
func (f *CollectiveRun) Launch(ctx context.Context, o job.Options) error {
	o = o.WithDefaults()
	switch {
	case f.Place.Transport == crew.TransportInProcess:
		events := crew.Quiet(o.Display)
		return inProcess(ctx, f.Ranks, f.Order.HostOrder(), o, func(ctx context.Context, g *collective.Group) error {
			return f.measure(ctx, g, part{spec: f.Spec, events: events, leader: g.Rank() == 0, where: onCPU(f.Placement)})
		})
	case f.Hosts == Namespaces:
		return f.launchNamespaces(ctx, o)
	}
	place, err := f.Place.Config(f.Ranks, o.Stderr)
	if err != nil {
		return crew.Usage(err)
	}
	c := f.crew(place, o)
	c.Announce = f.Place.First()
	return c.Launch(ctx)
}

// crew returns the crew of this machine's ranks.
func (f *CollectiveRun) crew(place cluster.Config, o job.Options) crew.Crew {
	if f.Placed != nil {
		f.Placed(place.Node, f.about(place.KeyFile))
	}
	c := crewAt(place, f.Ranks, f.Place.Process, o)
	c.Environ = job.Environ(place, f.Placement, o.Cache)
	return c
}

// launchNamespaces measures between processes of this machine, each in its own network
// namespace.
func (f *CollectiveRun) launchNamespaces(ctx context.Context, o job.Options) (err error) {
	plan, err := planNetwork(f.Place.KeyFile, f.Place.Insecure, f.Link)
	if err != nil {
		return crew.Usage(err)
	}
	network, key, done, err := plan.open(ctx, f.Ranks)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	c := f.crew(cluster.Config{
		Cluster: cmp.Or(f.Place.Cluster, crew.OwnCluster()), Nodes: 1, Node: cluster.NodeName(), LocalSize: f.Ranks,
		Transport: f.Place.Transport, Streams: f.Place.Streams, KeyFile: key, Insecure: key == "",
	}, o)
	c.Network = network
	return c.Launch(ctx)
}

// about describes the links for readers of the table.
func (f *CollectiveRun) about(keyFile string) string {
	var parts []string
	if f.Place.Transport == "auto" {
		parts = append(parts, "auto chose "+f.Transport())
	}
	if f.Hosts == Namespaces {
		parts = append(parts, "each rank in a network namespace, "+cmp.Or(f.Link, "no limit")+" each way")
	}
	parts = append(parts, tlsText(keyFile != ""))
	return "links: " + strings.Join(parts, "; ")
}

// Work runs one rank as a worker process. If one rank is asked to stop, all stop and
// report it to the launcher.
func (f *CollectiveRun) Work(w *crew.Worker) error {
	run := f.onHost
	if f.Placement.OnGPU() {
		run = f.onGPU
	}
	return stopped(w, run(w))
}

// onHost is Work with vectors in host memory.
func (f *CollectiveRun) onHost(w *crew.Worker) error {
	w.Place.Engine = device.EngineOf(nil, f.Place.Nodes)
	return measureWith(w, f.Order.HostOrder(), f.Place.JoinTimeout, func(ctx context.Context, g *collective.Group) error {
		p := f.part(w, onCPU(f.Placement))
		if f.Memory == Shared {
			p.spec.Alloc = w.Alloc
		}
		return f.measure(ctx, g, p)
	})
}

// prepare makes the group use the algorithm of --algorithm or the table of --tune.
func (f *CollectiveRun) prepare(ctx context.Context, g *collective.Group, secured bool, events event.Sink) error {
	if f.Algorithm == "" {
		return f.Order.Apply(ctx, g, secured, events)
	}
	m, err := schedule.ParseMethod(f.Algorithm)
	if err != nil {
		return crew.Usage(fmt.Errorf("--algorithm: %w", err))
	}
	s := g.Situation()
	if can := s.Candidates(); !slices.Contains(can, m) {
		return crew.Usage(fmt.Errorf("--algorithm %v: these ranks cannot do it with --order %v; there are %v", m, f.Order.HostOrder(), can))
	}
	return g.Tune(ctx, schedule.Only(g.Size(), m, cmp.Or(f.Segment, schedule.SegmentBytes)))
}

// A part is one rank's part in a measurement, in a worker or in this process.
type part struct {
	spec    Spec
	secured bool // what the ranks send is encrypted
	events  event.Sink
	leader  bool // this rank reports for its machine
	where   site
}

// part returns the part of a worker.
func (f *CollectiveRun) part(w *crew.Worker, where site) part {
	return part{spec: f.Spec, secured: w.Place.KeyFile != "", events: w.Events, leader: w.Place.Local == 0, where: where}
}

// measure measures all sizes.
func (f *CollectiveRun) measure(ctx context.Context, g *collective.Group, p part) error {
	if p.leader {
		view := event.NewView(g.View())
		p.where.fill(view)
		p.events.Emit(view)
		p.spec.Each = func(r Row) { p.events.Emit(&RowMeasured{Row: r}) }
	}
	err := f.prepare(ctx, g, p.secured, p.events)
	if err == nil {
		_, err = Run(ctx, g, p.spec)
	}
	var differ *SpecError
	if errors.As(err, &differ) {
		err = crew.Usage(err)
	}
	if err == nil || differ != nil {
		err = cmp.Or(err, g.Barrier(ctx)) // other ranks may not have received this rank's last message yet
	}
	if err != nil && !cancelled(err) {
		crew.TellLost(p.events, g.Rank(), err)
	}
	return err
}

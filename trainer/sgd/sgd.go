package sgd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/trace"
)

// ErrClosed is returned by calls after Close.
var ErrClosed = errors.New("sgd: closed")

// Options configure an SGD.
type Options struct {
	Workers int    // at least 1
	Devices int    // of each worker, at least 1
	Seed    uint64 // of dropout; the same in all processes

	// Verbose receives the times of the stages of each step, under the names that Ray
	// prints, and from Close their medians and 95th percentiles. Only the process of
	// worker 0, device 0 writes. nil: none.
	Verbose io.Writer
	// Trace is an empty file that receives a Chrome trace with a row for each worker. Only
	// the process of worker 0, device 0 writes. nil: none.
	Trace io.WriterAt
}

// An SGD is the replicas of one model. It belongs to one goroutine at a time.
type SGD struct {
	options  Options
	replicas []*Replica // those of this process, by rank
	owned    bool       // Close closes their groups
	step     int        // steps done
	broken   error      // of every later call

	verbose  *stageLog       // nil: none
	timeline *trace.Timeline // nil: none
}

// New makes all replicas in this process. They communicate by collective.Local. The caller
// calls Close in the end.
func New(ctx context.Context, creator Creator, o Options) (*SGD, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	views, transports := collective.Local(o.Workers * o.Devices)
	groups := make([]*collective.Group, len(views))
	for r, v := range views {
		groups[r] = collective.NewGroup(v, collective.OverTransport(v, transports[r]), collective.Options{})
	}
	return start(ctx, creator, o, groups, true)
}

// Join makes the replica of this process, which is a rank of g. All ranks call it with the
// same options. g stays the caller's, who closes it after Close; before that all ranks
// call g.Barrier, because a rank that leaves early breaks the calls of others. The group's
// engine must reach the memory of the replica.
func Join(ctx context.Context, g *collective.Group, creator Creator, o Options) (*SGD, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	if n := o.Workers * o.Devices; g.Size() != n {
		return nil, fmt.Errorf("sgd: %d workers of %d devices need a group of %d ranks, not %d", o.Workers, o.Devices, n, g.Size())
	}
	return start(ctx, creator, o, []*collective.Group{g}, false)
}

// Check reports the first mistake in o. New and Join call it.
func (o Options) Check() error {
	switch {
	case o.Workers < 1:
		return fmt.Errorf("sgd: Options.Workers must be at least 1, not %d", o.Workers)
	case o.Devices < 1:
		return fmt.Errorf("sgd: Options.Devices must be at least 1, not %d", o.Devices)
	}
	return nil
}

// start makes the replicas of some ranks, and gives all of them the same weights.
func start(ctx context.Context, creator Creator, o Options, groups []*collective.Group, owned bool) (*SGD, error) {
	s := &SGD{options: o, owned: owned}
	for _, g := range groups {
		s.replicas = append(s.replicas, &Replica{worker: g.Rank() / o.Devices, device: g.Rank() % o.Devices, rank: g.Rank(), group: g})
	}
	creating, cancel := context.WithCancel(ctx)
	defer cancel()
	err := s.fork("creating the model", func(r *Replica) error {
		err := r.create(creating, creator)
		if err != nil {
			cancel()           // the other creators need not finish
			r.group.Abort(err) // and other processes need not wait
		}
		return err
	})
	if err == nil {
		err = s.together(ctx, "starting", func(r *Replica) error { return r.start(ctx, o, trainer.State{}) })
	}
	if err != nil {
		return nil, errors.Join(err, s.release())
	}
	if s.first() != nil {
		s.observe()
	}
	return s, nil
}

// start agrees on weights and state with all replicas. Those of rank 0 count.
func (r *Replica) start(ctx context.Context, o Options, from trainer.State) error {
	settings := append(r.Task.Alike(),
		trainer.Setting{Name: "the number of devices of a worker", Value: strconv.Itoa(o.Devices)},
		trainer.Setting{Name: "the seed", Value: strconv.FormatUint(o.Seed, 10)})
	_, err := r.strategy.Start(ctx, trainer.Start{Group: r.group, Params: r.Task.Params(), From: from, Settings: settings})
	return err
}

// observe starts the log and the trace.
func (s *SGD) observe() {
	if s.options.Verbose != nil {
		s.verbose = &stageLog{w: s.options.Verbose}
	}
	if s.options.Trace != nil {
		names := make([]string, s.options.Workers)
		for w := range names {
			names[w] = fmt.Sprintf("worker %d", w)
		}
		s.timeline = trace.NewTimeline(s.options.Trace, names...)
	}
}

// size returns the number of replicas of all processes.
func (s *SGD) size() int { return s.options.Workers * s.options.Devices }

// first returns the replica of rank 0, or nil if another process has it.
func (s *SGD) first() *Replica {
	if r := s.replicas[0]; r.rank == 0 {
		return r
	}
	return nil
}

// Steps returns the number of steps done, including those before the checkpoint of
// Restore.
func (s *SGD) Steps() int { return s.step }

// Close writes the summary to Options.Verbose, and releases the replicas and their
// backends. It returns the first error of writing the log or the trace. Later calls do
// nothing.
func (s *SGD) Close() error {
	if errors.Is(s.broken, ErrClosed) {
		return nil
	}
	s.broken = ErrClosed
	var errs []error
	if s.verbose != nil {
		errs = append(errs, s.verbose.close())
	}
	if s.timeline != nil {
		errs = append(errs, s.timeline.Close())
	}
	return errors.Join(append(errs, s.release())...)
}

// release closes the replicas, and their groups if they are ours.
func (s *SGD) release() error {
	var errs []error
	for _, r := range s.replicas {
		errs = append(errs, r.close())
		if s.owned {
			errs = append(errs, r.group.Close())
		}
	}
	return errors.Join(errs...)
}

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/ncclgroup"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nccl"
	"github.com/ringtrain/ringtrain/nn/gpu"
)

// An accelerator is the GPU that one worker works on.
type accelerator struct {
	device *cuda.Device
	stream cuda.Stream
	nccl   ncclgroup.Use
	order  collective.Order  // in which NCCL, too, may add up
	engine *ncclgroup.Engine // of the newest group; nil for one rank
	alone  bool              // one rank makes only calls that change nothing
	broken func()            // called when a group breaks, before the stream goes on; may be nil
}

// onBackend is an accelerator whose calls come between those of a backend.
func onBackend(b *gpu.Backend, f deviceFlags, o orderFlags) *accelerator {
	return &accelerator{device: b.Device(), stream: b.Stream(), nccl: ncclUses[f.nccl], order: o.DeviceOrder(), alone: true, broken: b.Abort}
}

// over makes the engine of a group that reaches the GPU. base belongs to it. It is
// for cluster.Config.Engine.
func (a *accelerator) over(ctx context.Context, v collective.View, base *collective.HostEngine) (collective.Engine, error) {
	if v.Size() == 1 && a.alone {
		return alone{base, a.device.Info().Index}, nil
	}
	e, err := ncclgroup.New(ctx, v, base, ncclgroup.Config{Device: a.device, Stream: a.stream, NCCL: a.nccl, Breaking: a.broken})
	if err != nil {
		return nil, err
	}
	a.engine = e
	return ordered{e, a.order}, nil
}

var (
	_ collective.Engine = ordered{}
	_ collective.Engine = alone{}
)

// An ordered engine lets NCCL add up as --order says, or as it likes where that was
// not given; host memory keeps the order of the group.
type ordered struct {
	*ncclgroup.Engine
	order collective.Order
}

// Order is part of collective.Engine.
func (e ordered) Order(o collective.Order) {
	e.Engine.Order(e.order)
	e.Host().Order(o)
}

// An alone engine is that of one rank, whose calls leave vectors as they are,
// wherever they lie.
type alone struct {
	*collective.HostEngine
	device int
}

// Reaches is part of collective.Engine.
func (e alone) Reaches(v collective.Vector) bool {
	device, _, ok := v.Device()
	return ok && device == e.device || e.HostEngine.Reaches(v)
}

// Start is part of collective.Engine.
func (e alone) Start(o *collective.Operation) error {
	if _, _, ok := o.Dst.Device(); ok {
		if k := o.Call.Kind; k != collective.KindAllReduce && k != collective.KindBroadcast {
			return fmt.Errorf("%v of device memory in a group of one rank: %w", k, collective.ErrUnsupported)
		}
		return nil
	}
	return e.HostEngine.Start(o)
}

// plan says how vectors on the GPU are added up, by what plan says for the host.
func (a *accelerator) plan(host string) string {
	switch {
	case a.engine == nil:
		return "alone"
	case a.engine.Without() != nil:
		return "host memory, without NCCL: " + host
	case a.order == collective.RingOrder:
		return "host memory, for NCCL keeps no ring order: " + host
	}
	v, err := nccl.GetVersion()
	if err != nil {
		return "NCCL"
	}
	return fmt.Sprintf("NCCL %v, in an order of its own", v)
}

// without is why the ranks do without NCCL, for the user; "" if they do not.
func (a *accelerator) without() string {
	if a == nil || a.engine == nil || a.engine.Without() == nil {
		return ""
	}
	return "; without NCCL: " + plain(a.engine.Without())
}

// brokenTime is how long NCCL may take to let go of the stream of a broken group.
const brokenTime = 2 * time.Second

// whileWhole is ctx, and ends a while after the group breaks, with the reason: what NCCL
// keeps from ending must not keep the rank from saying who is lost. The function ends
// it, too.
func (a *accelerator) whileWhole(ctx context.Context) (context.Context, func()) {
	if a == nil || a.engine == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-a.engine.Broken():
		case <-ctx.Done():
			return
		}
		patience := time.NewTimer(brokenTime)
		defer patience.Stop()
		select {
		case <-patience.C:
			if err := a.engine.Err(); !errors.Is(err, collective.ErrLeft) { // a rank that is done keeps nobody from finishing
				cancel(err)
			}
		case <-ctx.Done():
		}
	})
	return ctx, func() {
		cancel(nil)
		watch.Wait()
	}
}

// letGoTime is how long a worker waits for its GPU at the end.
const letGoTime = 3 * time.Second

// letGo ends what a worker has of a GPU, or leaves it to the end of the process, which
// is near: a collective that NCCL never ends keeps the stream busy for ever, and the
// worker has yet to say what went wrong.
func letGo(end func() error) {
	patience := time.NewTimer(letGoTime)
	defer patience.Stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = end() // what failed has been said
	}()
	select {
	case <-done:
	case <-patience.C:
	}
}

// tellWithout says once, on the machine's first worker, why sums that NCCL was to make
// are the host's.
func (a *accelerator) tellWithout(local int, stderr io.Writer) {
	if local == 0 && a != nil && a.nccl != ncclgroup.Off && a.order != collective.RingOrder && a.without() != "" {
		fmt.Fprintf(stderr, "ringtrain: gradients are added up in host memory%s\n", strings.Replace(a.without(), ";", ",", 1))
	}
}

// plain is an error without the words that every error of a missing GPU library
// begins with.
func plain(err error) string {
	return strings.TrimPrefix(err.Error(), cuda.ErrUnavailable.Error()+": ")
}

// sameKind makes sure that all ranks of a view compute on GPUs, or none does: the
// engines of the two do not understand each other. All ranks call it.
func sameKind(ctx context.Context, v collective.View, base *collective.HostEngine, onGPU bool) error {
	mine := []int64{0}
	if onGPU {
		mine[0] = 1
	}
	all := make([]int64, v.Size())
	c := collective.Call{Kind: collective.KindAllGather, DType: collective.Int64, Count: 1}
	if err := base.Start(&collective.Operation{Header: collective.Header{Call: c}, Dst: collective.Of(all), Src: collective.Of(mine)}); err != nil {
		return err
	}
	if err := base.Wait(ctx); err != nil {
		return err
	}
	for r, kind := range all {
		if kind != all[0] {
			names := []string{"the CPU", "a GPU"}
			return usagef("rank %d (%s) computes on %s and rank 0 (%s) on %s: give the same --device, cpu or cuda, on every machine",
				r, v.Name(r), names[kind], v.Name(0), names[all[0]])
		}
	}
	return base.Agree(ctx, collective.Header{Call: collective.Call{Kind: collective.KindBarrier}}) // the engine forgets ctx
}

// engineOf is the cluster.Config.Engine of a worker with that accelerator, nil on
// the CPU, in a job of so many machines; nil if the group's own engine does.
func engineOf(a *accelerator, nodes int) func(context.Context, collective.View, *collective.HostEngine) (collective.Engine, error) {
	if a == nil && nodes < 2 {
		return nil
	}
	return func(ctx context.Context, v collective.View, base *collective.HostEngine) (collective.Engine, error) {
		if nodes > 1 {
			if err := sameKind(ctx, v, base, a != nil); err != nil {
				return nil, errors.Join(err, base.Close())
			}
		}
		if a == nil {
			return base, nil
		}
		return a.over(ctx, v, base)
	}
}

package device

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/ncclgroup"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nccl"
	"github.com/ringtrain/ringtrain/nn/gpu"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

// An Accelerator makes the engines of groups whose vectors are on one GPU.
type Accelerator struct {
	device *cuda.Device
	stream cuda.Stream
	nccl   ncclgroup.Use
	order  collective.Order  // of sums on GPUs
	engine *ncclgroup.Engine // of the newest group; nil for one rank
	alone  bool              // a group of one rank makes only calls that change nothing
	broken func()            // called when a group breaks, before the stream continues; may be nil
}

// NewAccelerator returns an Accelerator that enqueues calls on a stream of d and sums in
// order o. f says whether NCCL may sum.
func NewAccelerator(d *cuda.Device, stream cuda.Stream, f Choice, o collective.Order) *Accelerator {
	return &Accelerator{device: d, stream: stream, nccl: ncclUses[f.NCCL], order: o}
}

// onBackend returns an Accelerator that enqueues calls on the stream of a backend.
func onBackend(b *gpu.Backend, f Choice, o collective.Order) *Accelerator {
	a := NewAccelerator(b.Device(), b.Stream(), f, o)
	a.alone, a.broken = true, b.Abort
	return a
}

// over makes the engine of a group that reaches the GPU, for cluster.Config.Engine. The
// engine owns base.
func (a *Accelerator) over(ctx context.Context, v collective.View, base *collective.HostEngine) (collective.Engine, error) {
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

// An ordered engine has NCCL sum in the order of --order, or in any order if that was not
// given. Sums in host memory keep the order of the group.
type ordered struct {
	*ncclgroup.Engine
	order collective.Order
}

// Order implements collective.Engine.
func (e ordered) Order(o collective.Order) {
	e.Engine.Order(e.order)
	e.Host().Order(o)
}

// An alone engine is that of a group of one rank, whose calls leave vectors unchanged,
// in any memory.
type alone struct {
	*collective.HostEngine
	device int
}

// Reaches implements collective.Engine.
func (e alone) Reaches(v collective.Vector) bool {
	device, _, ok := v.Device()
	return ok && device == e.device || e.HostEngine.Reaches(v)
}

// Start implements collective.Engine.
func (e alone) Start(o *collective.Operation) error {
	if _, _, ok := o.Dst.Device(); ok {
		if k := o.Call.Kind; k != collective.KindAllReduce && k != collective.KindBroadcast {
			return fmt.Errorf("%v of device memory in a group of one rank: %w", k, collective.ErrUnsupported)
		}
		return nil
	}
	return e.HostEngine.Start(o)
}

// Plan says how vectors on the GPU are summed. host is the plan for host memory.
func (a *Accelerator) Plan(host string) string {
	if a.engine == nil {
		return "alone"
	}
	return planText(host, a.engine.Without(), a.order, nccl.GetVersion)
}

// planText is Plan for sums in order o. without says why NCCL is not used.
func planText(host string, without error, o collective.Order, version func() (nccl.Version, error)) string {
	switch {
	case without != nil:
		return "host memory, without NCCL: " + host
	case o == collective.RingOrder:
		return "host memory, because NCCL does not keep ring order: " + host
	}
	v, err := version()
	if err != nil {
		return "NCCL"
	}
	return fmt.Sprintf("NCCL %v, in an order of its own", v)
}

// Without returns why the ranks do not use NCCL, for the user; "" if they use it.
func (a *Accelerator) Without() string {
	if a == nil || a.engine == nil {
		return ""
	}
	return withoutText(a.engine.Without())
}

func withoutText(without error) string {
	if without == nil {
		return ""
	}
	return "; without NCCL: " + plain(without)
}

// TellWithout warns, on the machine's first worker only, if NCCL was to sum gradients but
// cannot.
func (a *Accelerator) TellWithout(local int, stderr io.Writer) {
	if local == 0 && a != nil {
		fmt.Fprint(stderr, fallbackText(a.nccl, a.order, a.Without()))
	}
}

// fallbackText returns the line of TellWithout; "" for none.
func fallbackText(u ncclgroup.Use, o collective.Order, without string) string {
	if u == ncclgroup.Off || o == collective.RingOrder || without == "" {
		return ""
	}
	return "ringtrain: gradients are summed in host memory" + strings.Replace(without, ";", ",", 1) + "\n"
}

// plain returns the text of an error without the prefix that all errors of missing GPU
// libraries have.
func plain(err error) string {
	return strings.TrimPrefix(err.Error(), cuda.ErrUnavailable.Error()+": ")
}

// sameKind checks that either all ranks of a view compute on GPUs or none does, because
// their engines use different protocols. All ranks call it.
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
			return crew.Usagef("rank %d (%s) computes on %s and rank 0 (%s) on %s: use the same --device, cpu or cuda, on every machine",
				r, v.Name(r), names[kind], v.Name(0), names[all[0]])
		}
	}
	return base.Agree(ctx, collective.Header{Call: collective.Call{Kind: collective.KindBarrier}}) // so that the engine no longer depends on ctx
}

// EngineOf returns the cluster.Config.Engine of a worker with Accelerator a, which is nil
// on the CPU. nodes is the number of machines in the job. EngineOf returns nil if the
// group needs no other engine.
func EngineOf(a *Accelerator, nodes int) func(context.Context, collective.View, *collective.HostEngine) (collective.Engine, error) {
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

// ByNCCL reports whether NCCL sums over the ranks.
func (a *Accelerator) ByNCCL() bool {
	return a.engine != nil && a.engine.Without() == nil && a.order == collective.AnyOrder
}

// Transport names what moves vectors on the GPU. host is the transport for host memory.
func (a *Accelerator) Transport(host string) string {
	return transportText(host, a.engine.Without(), a.order)
}

func transportText(host string, without error, o collective.Order) string {
	if without != nil || o == collective.RingOrder {
		return "staged-" + host
	}
	return "nccl"
}

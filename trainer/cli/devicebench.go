package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// checkDevice finds what does not go with GPUs, and where the ranks of this
// machine are.
func (f *benchFlags) checkDevice(s *bench.Spec) (err error) {
	if err := f.deviceFlags.check(); err != nil {
		return err
	}
	var hindrance error
	switch {
	case f.Transport == "inproc":
		hindrance = errInProcess
	case f.hosts == "netns":
		hindrance = errors.New("--hosts netns is for links between hosts, and GPUs of one host have others")
	case f.memory != memoryHeap:
		hindrance = errors.New("--memory says which memory of the host calls work on: leave it out")
	}
	if f.placement, err = f.deviceFlags.place(f.ranks, hindrance, cuda.Devices); err != nil {
		return err
	}
	ranks := f.ranks * f.Nodes
	if err := f.checkNCCL(f.placement, f.orderFlags, ranks); err != nil || !f.placement.onGPU() {
		return err
	}
	byNCCL := !f.hostAdds(f.orderFlags)
	switch {
	case byNCCL && f.algorithm != "":
		return errors.New("--algorithm is for what the host adds up: give --nccl off, too")
	case byNCCL && s.Check && s.Reduction == collective.Mean && ranks&(ranks-1) != 0:
		return fmt.Errorf("-o avg: NCCL rounds before it adds, so with %d ranks its results are not known exactly: give -c 0, or a power of two", ranks)
	}
	s.Way += fmt.Sprint(" on GPUs ", f.nccl, f.Given)
	return nil
}

// benchOnGPU is bench of one rank in a process of its own, on a GPU.
func (w *worker) benchOnGPU(s bench.Spec, f *benchFlags) error {
	d, err := cuda.Open(f.placement.gpus[w.Place.Local])
	if err != nil {
		return usage(fmt.Errorf("--device %s: %w", f.device, err))
	}
	m := &deviceMemory{device: d}
	defer letGo(func() error { return errors.Join(d.Do(context.Background(), m.free), d.Close()) })
	if err := d.Do(w.Stop(), func() (err error) {
		m.stream, err = d.NewStream()
		return err
	}); err != nil {
		return err
	}
	a := &accelerator{device: d, stream: m.stream, nccl: ncclUses[f.nccl], order: f.DeviceOrder()}
	w.Place.Engine = engineOf(a, f.Nodes)
	s.Device = m
	return w.measureWith(f.HostOrder(), f.JoinTimeout, func(ctx context.Context, g *collective.Group) error {
		about := site{transport: a.transport(f.chosen()), device: f.placement.String() + a.without()}
		return d.Do(ctx, func() error {
			return benchRank(ctx, g, s, f, w.Place.KeyFile != "", w.Events, w.Place.Local == 0, about)
		})
	})
}

// transport is what moves vectors on the GPU, if host moves those in host memory.
func (a *accelerator) transport(host string) string {
	if a.engine.Without() != nil || a.order == collective.RingOrder {
		return "staged-" + host
	}
	return "nccl"
}

// A site is what only the ranks know of where they work: for the table.
type site struct{ transport, device string }

// onCPU is the site of ranks that could have had GPUs, and have none.
func onCPU(p placement) (s site) {
	if p.why != "" {
		s.device = p.String()
	}
	return s
}

// fill completes a view with it.
func (p site) fill(e *event.View) { e.Transport, e.Device = p.transport, p.device }

// A deviceMemory is a bench.Device: memory of a GPU, in a stream.
type deviceMemory struct {
	device *cuda.Device
	stream cuda.Stream
	taken  []cuda.Ptr
}

var _ bench.Device = (*deviceMemory)(nil)

// Alloc is part of bench.Device.
func (m *deviceMemory) Alloc(t collective.DType, count int) (collective.Vector, error) {
	p, err := m.device.Alloc(max(count*t.Size(), 1))
	if err != nil {
		return collective.Vector{}, fmt.Errorf("%d %v for vectors: %w: lower -e", count, t, err)
	}
	m.taken = append(m.taken, p)
	return collective.OnDevice(m.device.Info().Index, uintptr(p), count, t), nil
}

// Write is part of bench.Device.
func (m *deviceMemory) Write(dst collective.Vector, src []byte) error {
	return m.stream.Write(pointer(dst), src)
}

// Read is part of bench.Device.
func (m *deviceMemory) Read(dst []byte, src collective.Vector) error {
	return m.stream.Read(dst, pointer(src))
}

// Copy is part of bench.Device.
func (m *deviceMemory) Copy(dst, src collective.Vector) error {
	return m.stream.Copy(pointer(dst), pointer(src), src.Bytes())
}

// Clear is part of bench.Device.
func (m *deviceMemory) Clear(v collective.Vector) error {
	return m.stream.Zero(pointer(v), v.Bytes())
}

// Wait is part of bench.Device.
func (m *deviceMemory) Wait(ctx context.Context) error { return m.stream.Sync(ctx) }

// free frees all, on the device's thread, when no group works there any more. It
// returns the first failure.
func (m *deviceMemory) free() error {
	var first error
	for _, p := range m.taken {
		first = cmp.Or(first, m.device.Free(p))
	}
	if m.stream != (cuda.Stream{}) {
		first = cmp.Or(first, m.stream.Destroy())
	}
	return first
}

func pointer(v collective.Vector) cuda.Ptr {
	_, at, _ := v.Device()
	return cuda.Ptr(at)
}

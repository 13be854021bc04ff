package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/device"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// CheckDevice refuses settings that GPUs do not support, and chooses the devices of this
// machine's ranks.
func (f *CollectiveRun) CheckDevice() error { return f.checkDevice(cuda.Devices) }

// checkDevice is CheckDevice on a machine with these devices.
func (f *CollectiveRun) checkDevice(devices func() ([]cuda.Info, error)) (err error) {
	s := &f.Spec
	if err := f.Device.Check(); err != nil {
		return err
	}
	var hindrance error
	switch {
	case f.Place.Transport == crew.TransportInProcess:
		hindrance = device.ErrInProcess
	case f.Hosts == Namespaces:
		hindrance = errors.New("--hosts netns emulates links between hosts, which GPUs of one host do not use; use --device cpu")
	case f.Memory != Heap:
		hindrance = errors.New("--memory selects host memory; remove it")
	}
	if f.Placement, err = f.Device.Place(f.Ranks, hindrance, devices); err != nil {
		return err
	}
	if err := f.Device.CheckPlace(f.Placement); err != nil {
		return err
	}
	ranks := f.Ranks * f.Place.Nodes
	if err := f.Device.CheckNCCL(f.Placement, f.Order.DeviceOrder(), ranks); err != nil || !f.Placement.OnGPU() {
		return err
	}
	byNCCL := !f.Device.HostAdds(f.Order.DeviceOrder())
	switch {
	case byNCCL && f.Algorithm != "":
		return errors.New("--algorithm applies only to sums on the host; add --nccl off")
	case byNCCL && s.Check && s.Reduction == collective.Mean && ranks&(ranks-1) != 0:
		return fmt.Errorf("-o avg: NCCL rounds before it adds, so with %d ranks results cannot be checked exactly; use -c 0 or a power of two", ranks)
	}
	s.Way += fmt.Sprint(" on GPUs ", f.Device.NCCL, f.Order.Given)
	return nil
}

// onGPU is Work with vectors in GPU memory.
func (f *CollectiveRun) onGPU(w *crew.Worker) error {
	d, err := cuda.Open(f.Placement.GPU(w.Place.Local))
	if err != nil {
		return crew.Usagef("--device %s: %w", f.Device.Device, err)
	}
	m := &deviceMemory{device: d}
	defer device.LetGo(func() error { return errors.Join(d.Do(context.Background(), m.free), d.Close()) })
	if err := d.Do(w.Stop(), func() (err error) {
		m.stream, err = d.NewStream()
		return err
	}); err != nil {
		return err
	}
	a := device.NewAccelerator(d, m.stream, f.Device, f.Order.DeviceOrder())
	w.Place.Engine = device.EngineOf(a, f.Place.Nodes)
	return measureWith(w, f.Order.HostOrder(), f.Place.JoinTimeout, func(ctx context.Context, g *collective.Group) error {
		p := f.part(w, site{transport: a.Transport(f.Transport()), device: f.Placement.String() + a.Without()})
		p.spec.Device = m
		return d.Do(ctx, func() error { return f.measure(ctx, g, p) })
	})
}

// A site describes for the table where the ranks compute.
type site struct{ transport, device string }

// onCPU is the site of ranks that fell back to the CPU.
func onCPU(p device.Placement) (s site) {
	if p.Why() != "" {
		s.device = p.String()
	}
	return s
}

// fill adds the site to a view event.
func (p site) fill(e *event.View) { e.Transport, e.Device = p.transport, p.device }

// A deviceMemory is a Device over GPU memory. Its work is queued on one stream.
type deviceMemory struct {
	device *cuda.Device
	stream cuda.Stream
	taken  []cuda.Ptr
}

var _ Device = (*deviceMemory)(nil)

// Alloc is part of Device.
func (m *deviceMemory) Alloc(t collective.DType, count int) (collective.Vector, error) {
	p, err := m.device.Alloc(max(count*t.Size(), 1))
	if err != nil {
		return collective.Vector{}, fmt.Errorf("%d %v for vectors: %w: lower -e", count, t, err)
	}
	m.taken = append(m.taken, p)
	return collective.OnDevice(m.device.Info().Index, uintptr(p), count, t), nil
}

// Write is part of Device.
func (m *deviceMemory) Write(dst collective.Vector, src []byte) error {
	return m.stream.Write(pointer(dst), src)
}

// Read is part of Device.
func (m *deviceMemory) Read(dst []byte, src collective.Vector) error {
	return m.stream.Read(dst, pointer(src))
}

// Copy is part of Device.
func (m *deviceMemory) Copy(dst, src collective.Vector) error {
	return m.stream.Copy(pointer(dst), pointer(src), src.Bytes())
}

// Clear is part of Device.
func (m *deviceMemory) Clear(v collective.Vector) error {
	return m.stream.Zero(pointer(v), v.Bytes())
}

// Wait is part of Device.
func (m *deviceMemory) Wait(ctx context.Context) error { return m.stream.Sync(ctx) }

// free frees everything, on the device's thread, after the last group that uses the
// memory is closed. It returns the first error.
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

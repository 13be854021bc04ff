package gpu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/cuda/kernels"
	"github.com/ringtrain/ringtrain/nn"
)

// Sizes in bytes of what a pace keeps in device memory.
const (
	progressBytes = 16
	rowBytes      = nn.HyperLen * elementBytes
)

// mostMarks bounds the number of events that a pace keeps. If more recordings are
// queued, Losses may wait for later steps than it needs.
const mostMarks = 32

// A pace keeps a run's progress in device memory, and lets the host run ahead. Kernels
// read the hyper-parameters of coming steps from a table, which the host refills from
// time to time, and write losses to host memory. So a step needs one launch and no copy.
type pace struct {
	b *Backend
	nn.PaceConfig

	progress cuda.Ptr  // kernels.Progress
	random   cuda.Ptr  // kernels.Random
	table    cuda.Ptr  // Keep rows of hyper-parameters; step s has row s mod Keep
	hyper    nn.Buffer // hyper-parameters of the current step
	losses   *cuda.Pinned

	step   int // the next step after everything that is queued
	filled int // the table holds the rows of steps before this one
	kept   int // number of steps before step whose losses are or will be there
	marks  []mark
	spare  []cuda.Event
}

// A mark is an event after all steps before step.
type mark struct {
	event cuda.Event
	step  int
}

var _ nn.Pacer = (*Backend)(nil)

// NewPace implements nn.Pacer. It must not be called in a recording.
func (b *Backend) NewPace(c nn.PaceConfig) nn.Pace {
	if c.Keep == 0 {
		c.Keep = nn.DefaultKeep
	}
	c.Keep = max(c.Keep, 2) // rows for the current step and the next
	p := &pace{b: b, PaceConfig: c, hyper: b.Alloc(nn.HyperLen)}
	b.paces = append(b.paces, p)
	if b.failure == nil {
		b.note("NewPace", p.open())
	}
	p.Seek(0, 0)
	return p
}

func (p *pace) open() (err error) {
	for _, m := range []struct {
		at    *cuda.Ptr
		bytes int
	}{{&p.progress, progressBytes}, {&p.random, randomBytes}, {&p.table, p.Keep * rowBytes}} {
		if *m.at, err = p.b.lasting.next(m.bytes); err != nil {
			return err
		}
	}
	p.losses, err = p.b.device.AllocPinned(p.Keep*elementBytes, true)
	return err
}

// Seek implements nn.Pace.
func (p *pace) Seek(step, first int) {
	if p.b.recording != nil {
		p.b.fail(refuse("Seek"))
	}
	if p.b.failure != nil {
		return
	}
	if step != p.step {
		p.kept, p.spare, p.marks = 0, append(p.spare, p.events()...), nil
		p.step, p.filled = step, step
	}
	h := p.PaceConfig.Hyper(step)
	_, hyper, _ := p.hyper.Device()
	p.send(cuda.Ptr(hyper), h)
	p.send(p.progress, kernels.Progress{Step: uint64(step), First: int64(first)})
	p.send(p.random, kernels.NewRandom(p.Random()))
}

// send queues a copy of a value of fixed size to the device.
func (p *pace) send(to cuda.Ptr, v any) {
	bytes, err := binary.Append(nil, binary.NativeEndian, v)
	if err == nil && p.b.failure == nil {
		err = p.b.staging.send(p.b.stream, to, bytes)
	}
	p.b.note("Pace", err)
}

// Step implements nn.Pace.
func (p *pace) Step() int { return p.step }

// Random implements nn.Pace.
func (p *pace) Random() nn.Stream {
	s := p.PaceConfig.Random
	s.Step = uint64(p.step)
	return s
}

// Hyper implements nn.Pace.
func (p *pace) Hyper() nn.Buffer { return p.hyper }

// Gather implements nn.Pace.
func (p *pace) Gather(y, data, order nn.Buffer, width int) {
	n := rows("Gather", y, width)
	need("Gather", y.DType() == data.DType() && data.Len()%width == 0)
	p.b.launch("gather_words", y.Len(), p.b.at(y), p.b.at(data), p.b.at(order), p.progress.Arg(), number(n), number(width))
}

// GatherBytes implements nn.Pace.
func (p *pace) GatherBytes(y, data, order nn.Buffer, width int, divisor float32) {
	n := rows("GatherBytes", y, width)
	none := cuda.Ptr(0).Arg()
	p.b.launch("gather_bytes", y.Len(), p.b.at(y), p.b.at(data), none, none, p.b.at(order), p.progress.Arg(), number(n), number(width), cuda.Float32(divisor))
}

// GatherLabelled implements nn.Pace.
func (p *pace) GatherLabelled(y, data, labels, classes, order nn.Buffer, width int, divisor float32) {
	n, b := rows("GatherLabelled", y, width), p.b
	need("GatherLabelled", labels.Len() == n && labels.DType() == nn.Int32 && classes.DType() == nn.Int32)
	b.launch("gather_bytes", y.Len(), b.at(y), b.at(data), b.at(labels), b.at(classes), b.at(order), p.progress.Arg(), number(n), number(width), cuda.Float32(divisor))
}

// Tick implements nn.Pace.
func (p *pace) Tick(loss nn.Buffer, rows int) {
	b := p.b
	need("Tick", loss.Len() == 1)
	if r := b.recording; r != nil {
		if r.pace != nil && r.pace != p {
			b.fail(errors.New("Tick of two Paces in one recording, which can have only one; record them separately"))
		}
		r.pace = p
		r.ticks++
		if r.ticks >= p.Keep {
			b.fail(fmt.Errorf("%d steps in one recording are too many for a Pace that keeps %d; increase PaceConfig.Keep", r.ticks, p.Keep))
		}
	}
	if p.ahead(1); b.failure != nil {
		return
	}
	b.launch("tick", 1, p.progress.Arg(), count(rows), p.losses.Device().Arg(), number(p.Keep), b.at(loss), b.at(p.hyper), p.table.Arg(), number(p.Keep), p.random.Arg(), b.stop.Arg())
	p.ticked(1)
}

// ahead makes sure that the table has the hyper-parameters that n more ticks take. When
// it has to refill, it replaces every row that is no longer needed.
func (p *pace) ahead(n int) {
	p.filled = max(p.filled, p.step+1)
	for p.filled <= p.step+n && p.b.failure == nil {
		at := p.filled % p.Keep
		run := min(p.Keep-at, p.step+p.Keep-p.filled) // to the end of the table or to the first row still needed
		rows := make([][nn.HyperLen]float32, run)
		for i := range rows {
			rows[i] = p.PaceConfig.Hyper(p.filled + i)
		}
		p.send(p.table+cuda.Ptr(at*rowBytes), rows)
		p.filled += run
	}
}

// ticked records that n ticks were queued.
func (p *pace) ticked(n int) {
	p.step += n
	p.kept = min(p.kept+n, p.Keep)
	if p.b.failure == nil {
		p.b.note("Tick", p.mark())
	}
}

// mark queues an event after the steps queued so far.
func (p *pace) mark() (err error) {
	m := mark{step: p.step}
	if len(p.marks) >= mostMarks {
		p.spare, p.marks = append(p.spare, p.marks[0].event), p.marks[1:]
	}
	if n := len(p.spare); n > 0 {
		m.event, p.spare = p.spare[n-1], p.spare[:n-1]
	} else if m.event, err = p.b.device.NewEvent(false); err != nil {
		return err
	}
	p.marks = append(p.marks, m)
	return m.event.Record(p.b.stream)
}

// Losses implements nn.Pace. Kernels write losses to host memory, so Losses waits for an
// event and copies nothing from the device.
func (p *pace) Losses(ctx context.Context, step int, dst []float32) error {
	b := p.b
	end := step + len(dst)
	switch {
	case b.closed:
		return ErrClosed
	case b.recording != nil:
		return fmt.Errorf("gpu: recording %q: %w", b.recording.key, refuse("Losses"))
	case b.failure != nil:
		return fmt.Errorf("gpu: device %d: %w", b.info.Index, b.failure)
	case end > p.step || step < p.step-p.kept:
		return fmt.Errorf("gpu: the losses of steps %d to %d are not available; only those of steps %d to %d are kept", step, end-1, p.step-p.kept, p.step-1)
	}
	for len(p.marks) > 1 && p.marks[0].step < end {
		p.spare, p.marks = append(p.spare, p.marks[0].event), p.marks[1:]
	}
	if len(p.marks) > 0 { // the first mark now is at end or later, because the last one is at p.step
		if err := p.marks[0].event.Sync(ctx); err != nil {
			return fmt.Errorf("gpu: device %d: %w", b.info.Index, err)
		}
	}
	for i := range dst {
		dst[i] = p.losses.Float32s()[(step+i)%p.Keep]
	}
	return nil
}

// events returns the events of the marks.
func (p *pace) events() []cuda.Event {
	var all []cuda.Event
	for _, m := range p.marks {
		all = append(all, m.event)
	}
	return all
}

// close frees what does not belong to the backend's pools.
func (p *pace) close() error {
	var first error
	for _, e := range append(p.events(), p.spare...) {
		if err := e.Destroy(); first == nil {
			first = err
		}
	}
	p.marks, p.spare = nil, nil
	if p.losses == nil {
		return first
	}
	if err := p.losses.Free(); first == nil {
		first = err
	}
	return first
}

package cpu

import (
	"context"
	"fmt"
	"unsafe"

	"github.com/ringtrain/ringtrain/nn"
)

var _ nn.Pacer = (*Backend)(nil)

// A pace is an nn.Pace that has done everything by the time a call returns.
type pace struct {
	nn.PaceConfig
	step, first int
	hyper       nn.Buffer
	losses      []float32 // step s is at index s modulo the length
	kept        int       // number of steps in losses
}

// NewPace implements nn.Pacer.
func (b *Backend) NewPace(c nn.PaceConfig) nn.Pace {
	if c.Keep == 0 {
		c.Keep = nn.DefaultKeep
	}
	p := &pace{PaceConfig: c, hyper: b.Alloc(nn.HyperLen), losses: make([]float32, c.Keep)}
	p.prepare()
	return p
}

// prepare loads the hyper-parameters of the next step.
func (p *pace) prepare() {
	h := p.PaceConfig.Hyper(p.step)
	copy(p.hyper.Float32s(), h[:])
}

func (p *pace) Seek(step, first int) {
	if step != p.step {
		p.kept = 0
	}
	p.step, p.first = step, first
	p.prepare()
}

func (p *pace) Step() int { return p.step }

func (p *pace) Random() nn.Stream {
	s := p.PaceConfig.Random
	s.Step = uint64(p.step)
	return s
}

func (p *pace) Hyper() nn.Buffer { return p.hyper }

func (p *pace) Gather(y, data, order nn.Buffer, width int) {
	if y.DType() == nn.Int32 {
		gather(y.Int32s(), data.Int32s(), p.rows(order), width)
		return
	}
	gather(y.Float32s(), data.Float32s(), p.rows(order), width)
}

func gather[T any](y, data []T, rows []int32, width int) {
	for i := range len(y) / width {
		copy(y[i*width:(i+1)*width], data[int(rows[i])*width:])
	}
}

func (p *pace) GatherBytes(y, data, order nn.Buffer, width int, divisor float32) {
	words := data.Int32s()
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), 4*len(words))
	rows := p.rows(order)
	for i := range y.Len() / width {
		dst := y.Float32s()[i*width : (i+1)*width]
		for j, v := range bytes[int(rows[i])*width:][:width] {
			dst[j] = float32(v) / divisor
		}
	}
}

func (p *pace) GatherLabelled(y, data, labels, classes, order nn.Buffer, width int, divisor float32) {
	p.GatherBytes(y, data, order, width, divisor)
	p.Gather(labels, classes, order, 1)
}

// rows returns the row indexes of the next step and of later ones.
func (p *pace) rows(order nn.Buffer) []int32 { return order.Int32s()[p.first:] }

func (p *pace) Tick(loss nn.Buffer, rows int) {
	p.losses[p.step%p.Keep] = loss.Float32s()[0]
	p.kept = min(p.kept+1, p.Keep)
	p.step++
	p.first += rows
	p.prepare()
}

func (p *pace) Losses(_ context.Context, step int, dst []float32) error {
	if step+len(dst) > p.step || step < p.step-p.kept {
		return fmt.Errorf("cpu: the losses of steps %d to %d are not available; only those of steps %d to %d are kept", step, step+len(dst)-1, p.step-p.kept, p.step-1)
	}
	for i := range dst {
		dst[i] = p.losses[(step+i)%p.Keep]
	}
	return nil
}

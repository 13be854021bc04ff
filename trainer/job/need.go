package job

import (
	"context"
	"fmt"
	"io"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/device"
)

// deviceNeed estimates the device memory of a worker. Activations grow linearly with the
// rows of a batch, so it measures two small batches on the CPU.
func (s *Training) deviceNeed() (device.Need, error) {
	inner := cpu.New(cpu.Options{})
	defer inner.Close()
	backend := &meter{Backend: inner}
	probe, err := s.Problem.Probe(backend)
	if err != nil {
		return device.Need{}, err
	}
	sums := 0 // of the gradients of convolutions, which take no temporary memory on the CPU
	backend.convGrad = func(products, weights, filters int) {
		sums += s.Spec.Products.ConvGradMemory(products, s.Batch, weights, filters)
	}
	var temporary [3]int // by rows
	for rows := 1; rows < len(temporary); rows++ {
		backend.Recycle()
		sums = 0
		if err := probe.Learn(&nn.Pass{Backend: backend, Train: true}, rows); err != nil {
			return device.Need{}, err
		}
		temporary[rows] = backend.bytes
	}
	each := temporary[2] - temporary[1]
	first := temporary[1]
	if s.Spec.Products.BF16 { // factors have copies of half the size: at most of all activations, and of weights and gradients
		each += each / 2
		first += first/2 + 2*probe.Params.Values.Len()
	}
	arenas := 2 + len(s.optimizer.Slots()) // values and gradients
	arenas += s.Spec.roundArenas()
	if s.micro > 1 {
		arenas++ // the sum of earlier micro-batches
	}
	if s.Spec.Gradients.Faithful {
		arenas += s.micro
	}
	memory := s.Problem.Memory()
	data := (memory.Row + 4) * (s.Batch*s.micro + s.evalBatch)
	pass := func(rows int) int { return first + each*(rows-1) } // evaluation takes no more per row
	activations := max(pass(s.Batch)+sums, pass(s.evalBatch))
	if how := s.Spec.Graphs.How; how != "" && how != device.GraphsOff && s.withoutGraphs() == nil {
		data += memory.Resident
		activations = pass(s.Batch) + sums + pass(s.evalBatch) // recordings keep memory of their own
	}
	byCuDNN := s.Spec.Products.ByCuDNN(backend.products, s.Batch)
	return device.Need{
		Parameters:  4 * probe.Params.Values.Len() * arenas,
		Activations: activations,
		Data:        data,
		Library:     device.LibraryMemory(byCuDNN),
		ByCuDNN:     byCuDNN,
	}, nil
}

// multiplier names the library and precision of matrix products on GPUs, and cuDNN if it
// computes convolutions.
func (s *Training) multiplier() string {
	need, err := s.deviceNeed()
	return s.Spec.Products.Multiplier(err == nil && need.ByCuDNN) // choosePlacement reports the error
}

// checkDeviceMemory returns an error if the workers do not fit into the memory of their
// GPUs.
func (s *Training) checkDeviceMemory() error {
	need, err := s.deviceNeed()
	if err != nil {
		return err
	}
	return s.Placement.CheckMemory(need)
}

// openGPU opens the GPU of a worker, or returns nil if the worker computes on the CPU. The
// first worker of a machine writes notices to stderr.
func (s *Training) openGPU(ctx context.Context, local int, stderr io.Writer) (*device.GPU, error) {
	u := device.Use{Choice: s.Spec.Device, Products: s.Spec.Products, Order: s.Spec.Order.DeviceOrder()}
	if local == 0 {
		u.Notice = func(line string) { fmt.Fprintln(stderr, "ringtrain:", line) }
	}
	g, err := device.Open(s.Placement, local, u)
	if g == nil || err != nil {
		return nil, err
	}
	need, err := s.deviceNeed()
	if err == nil {
		err = g.CheckFree(ctx, need)
	}
	if err != nil {
		g.Close()
		return nil, crew.Usage(err)
	}
	return g, nil
}

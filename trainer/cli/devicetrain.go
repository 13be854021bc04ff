package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/gpu"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// A trainingGPU is the GPU of one worker of a training. Its methods may be called
// on nil, which is none.
type trainingGPU struct {
	backend *gpu.Backend
	*accelerator
}

// openGPU opens the GPU of a worker; nil if it is to compute on the CPU. The first
// worker of a machine says there what is unusual.
func (s *settings) openGPU(ctx context.Context, local int, stderr io.Writer) (*trainingGPU, error) {
	if !s.placement.onGPU() {
		return nil, nil
	}
	o := gpu.Options{Device: s.placement.gpus[local], TF32: s.flags.tf32, BF16: s.flags.bf16}
	if err := s.timing(&o, local); err != nil {
		return nil, usage(err)
	}
	if cache, err := data.OpenCache(); err == nil { // without one kernels are compiled each time
		o.Cache = filepath.Join(cache.Dir, "kernels")
	}
	if local == 0 {
		o.Notice = func(line string) { fmt.Fprintln(stderr, "ringtrain:", line) }
	}
	b, err := gpu.New(o)
	if err != nil {
		return nil, usage(fmt.Errorf("--device %s: %w", s.flags.device, err))
	}
	t := &trainingGPU{backend: b, accelerator: onBackend(b, s.flags.deviceFlags, s.flags.orderFlags)}
	if err := s.checkFreeMemory(ctx, b, local); err != nil {
		t.close()
		return nil, usage(err)
	}
	return t, nil
}

// engines is what makes the engines of groups; nil without a GPU.
func (t *trainingGPU) engines() *accelerator {
	if t == nil {
		return nil
	}
	return t.accelerator
}

// close frees the GPU, when no group works there any more. What it says of
// failures has been said: the step that failed has.
func (t *trainingGPU) close() {
	if t != nil {
		letGo(t.backend.Close)
	}
}

// A deviceNeed is what one worker's training takes of a GPU's memory, in bytes.
type deviceNeed struct {
	parameters, activations, data, library int

	byCuDNN bool // cuDNN computes convolutions
}

func (n deviceNeed) total() int { return n.parameters + n.activations + n.data + n.library }

// String is the sum and its parts.
func (n deviceNeed) String() string {
	return fmt.Sprintf("%s (%s for values, gradients and optimizer, %s for activations, %s for data and batches, %s for products to work in)",
		size(n.total()), size(n.parameters), size(n.activations), size(n.data), size(n.library))
}

// size is bytes of a GPU's memory for people.
func size[T int | uint64](bytes T) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return gib(uint64(bytes))
}

// libraryBytes is what products of matrices work in.
const libraryBytes = 32 << 20

// deviceNeed estimates what a worker takes. Activations grow with the rows of a
// batch, so two small batches on the CPU tell.
func (s *settings) deviceNeed() (deviceNeed, error) {
	inner := cpu.New(cpu.Options{})
	defer inner.Close()
	backend := &meter{Backend: inner}
	layers, err := s.layers()
	if err != nil {
		return deviceNeed{}, err
	}
	info := s.source.Info
	features := info.Height * info.Width
	model, err := nn.NewClassifier(backend, layers, []int{features}, 10, 0)
	if err != nil {
		return deviceNeed{}, err
	}
	var temporary [3]int // by rows
	for rows := 1; rows < len(temporary); rows++ {
		backend.Recycle()
		batch := nn.Batch{X: nn.Tensor{Shape: []int{rows, features}, Data: backend.Alloc(rows * features)}, Labels: backend.AllocInts(rows)}
		if _, _, err := model.Learn(&nn.Pass{Backend: backend, Train: true}, batch); err != nil {
			return deviceNeed{}, err
		}
		temporary[rows] = backend.bytes
	}
	each := temporary[2] - temporary[1]
	first := temporary[1]
	if s.flags.bf16 { // factors have copies of half their size: at most all that layers and their gradients take, and the weights
		each += each / 2
		first += first/2 + 2*model.Params().Values.Len()
	}
	arenas := 2 + len(s.optimizer.Slots()) // values and gradients
	if s.micro > 1 {
		arenas++ // the sum of the earlier ones
	}
	if s.flags.faithful {
		arenas += s.micro
	}
	data := 4 * (features + 1) * (s.batch*s.micro + s.evalBatch)
	if s.flags.graphs != graphsOff && s.withoutGraphs() == nil {
		data += info.TrainRows * (features + 8) // pixels, a label and a place in the order
	}
	byCuDNN := backend.products > 0 && (s.flags.timed != "" || backend.products*s.batch >= gpu.LeastForCuDNN) && dnnName() != ""
	library := libraryBytes
	if byCuDNN {
		library += cuda.DNNWorkspace
	}
	return deviceNeed{
		parameters:  4 * model.Params().Values.Len() * arenas,
		activations: first + each*(max(s.batch, s.evalBatch)-1), // an evaluation takes no more for a row
		data:        data,
		library:     library,
		byCuDNN:     byCuDNN,
	}, nil
}

// checkDeviceMemory finds out before anything starts whether the workers of each
// GPU would fit if it were empty.
func (s *settings) checkDeviceMemory() error {
	need, err := s.deviceNeed()
	if err != nil {
		return err
	}
	for local, at := range s.placement.gpus {
		info, workers := s.placement.of(local), s.placement.sharing(at)
		if float64(workers)*float64(need.total()) > float64(info.Memory) {
			return tooLittle(info, "has "+size(info.Memory), workers, need)
		}
	}
	return nil
}

// checkFreeMemory finds out whether a worker fits into what is left of its GPU.
func (s *settings) checkFreeMemory(ctx context.Context, b *gpu.Backend, local int) error {
	need, err := s.deviceNeed()
	if err != nil {
		return err
	}
	return b.Do(ctx, func() error {
		free, total, err := b.Device().MemInfo()
		if err != nil {
			return err
		}
		need.library -= libraryBytes // the backend has that already
		if uint64(need.total()) > free {
			return tooLittle(b.Info(), fmt.Sprintf("has %s free of %s", size(free), size(total)), 1, need)
		}
		return nil
	})
}

func tooLittle(info cuda.Info, has string, workers int, need deviceNeed) error {
	who := "a worker takes"
	if workers > 1 {
		who = fmt.Sprintf("each of %d workers takes", workers)
	}
	return fmt.Errorf("GPU %d (%s) %s of memory, and %s about %v: lower --batch or evaluation.batch_size, make the model smaller, or give --device cpu",
		info.Index, info.Name, has, who, need)
}

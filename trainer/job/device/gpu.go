package device

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/gpu"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

// A GPU is the GPU of one worker. Engines and Close may be called on nil, which means
// that the worker has none.
type GPU struct {
	*Accelerator
	backend *gpu.Backend
}

// A Use says what a worker does on its GPU.
type Use struct {
	Choice   Choice
	Products Products
	Order    collective.Order  // of sums of gradients; see tuned.Choice.DeviceOrder
	Notice   func(line string) // receives warnings; may be nil
}

// Open opens the GPU of worker local. It returns nil if the worker computes on the CPU.
// The caller closes it after the groups that use it.
func Open(p Placement, local int, u Use) (*GPU, error) {
	if !p.OnGPU() {
		return nil, nil
	}
	o := gpu.Options{Device: p.gpus[local], TF32: u.Products.TF32, BF16: u.Products.BF16, Notice: u.Notice}
	if err := u.Products.timing(&o, p.Of(local), local); err != nil {
		return nil, crew.Usage(err)
	}
	if cache, err := data.OpenCache(); err == nil { // without one kernels are compiled each time
		o.Cache = filepath.Join(cache.Dir, "kernels")
	}
	b, err := gpu.New(o)
	if err != nil {
		return nil, crew.Usage(fmt.Errorf("--device %s: %w", u.Choice.Device, err))
	}
	return &GPU{backend: b, Accelerator: onBackend(b, u.Choice, u.Order)}, nil
}

// Engines returns the Accelerator that makes the engines of groups; nil without a GPU.
func (t *GPU) Engines() *Accelerator {
	if t == nil {
		return nil
	}
	return t.Accelerator
}

// Backend returns the GPU's backend. Call it from Do only.
func (t *GPU) Backend() nn.Pacer { return t.backend }

// Do calls f on the GPU's thread, the only one that may use its backend.
func (t *GPU) Do(ctx context.Context, f func() error) error { return t.backend.Do(ctx, f) }

// Summer returns a GradientSummer that uses NCCL.
func (t *GPU) Summer(ctx context.Context) trainer.GradientSummer { return gpuSummer{t, ctx} }

// Forget frees graphs. Call it before the engine whose calls they contain is closed,
// because NCCL does not free a communicator that a graph uses. Call it from Do only.
func (t *GPU) Forget() { _ = t.backend.Forget() } // an error is that of an earlier step, already reported

// Close frees the GPU after its groups were closed.
func (t *GPU) Close() {
	if t != nil {
		LetGo(t.backend.Close)
	}
}

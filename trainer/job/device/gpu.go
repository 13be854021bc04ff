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

// A GPU is the one of a worker of a training. Its methods may be called on nil, which
// is none, but for Do, Sums, Resident and CheckFree.
type GPU struct {
	*Accelerator
	backend *gpu.Backend
}

// A Use is what a worker does on its GPU.
type Use struct {
	Choice   Choice
	Products Products
	Order    collective.Order  // in which gradients are added up, see tuned.Choice.DeviceOrder
	Notice   func(line string) // is told what is unusual; may be nil
}

// Open opens the GPU of worker local; nil if it is to compute on the CPU. The caller
// closes it after the groups that work there.
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

// Engines is what makes the engines of groups; nil without a GPU.
func (t *GPU) Engines() *Accelerator {
	if t == nil {
		return nil
	}
	return t.Accelerator
}

// Backend is the backend that computes there.
func (t *GPU) Backend() nn.Pacer { return t.backend }

// Do calls f on the thread of the GPU, where alone its backend works.
func (t *GPU) Do(ctx context.Context, f func() error) error { return t.backend.Do(ctx, f) }

// Sums are sums of gradients by NCCL.
func (t *GPU) Sums(ctx context.Context) trainer.Sums { return gpuSums{t, ctx} }

// Forget ends graphs before the engine whose calls are in them: NCCL frees no
// communicator that a graph holds. Its failure has been told: it is that of a step.
// It is called from inside Do.
func (t *GPU) Forget() { _ = t.backend.Forget() }

// Close frees the GPU, when no group works there any more. What it says of failures
// has been said: the step that failed has.
func (t *GPU) Close() {
	if t != nil {
		LetGo(t.backend.Close)
	}
}

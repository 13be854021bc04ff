package device

import (
	"context"
	"fmt"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/trainer/job/machine"
)

// A Need is the GPU memory of one worker, in bytes.
type Need struct {
	Parameters  int // values, gradients and what the optimizer keeps
	Activations int
	Data        int // rows and batches
	Library     int // workspaces, see LibraryMemory

	ByCuDNN bool // cuDNN computes convolutions
}

func (n Need) total() int { return n.Parameters + n.Activations + n.Data + n.Library }

// String returns the total and its parts.
func (n Need) String() string {
	return fmt.Sprintf("%s (%s for values, gradients and optimizer, %s for activations, %s for data and batches, %s for workspaces)",
		size(n.total()), size(n.Parameters), size(n.Activations), size(n.Data), size(n.Library))
}

// size returns a number of bytes as text.
func size[T int | uint64](bytes T) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return machine.GiB(uint64(bytes))
}

// LibraryMemory returns the workspace of cuBLASLt, and of cuDNN if it computes
// convolutions, in bytes.
func LibraryMemory(byCuDNN bool) int {
	if byCuDNN {
		return libraryBytes + cuda.DNNWorkspace
	}
	return libraryBytes
}

// libraryBytes is the workspace of cuBLASLt.
const libraryBytes = 32 << 20

// CheckMemory reports a GPU that is too small for its workers even if all of its memory
// is free.
func (p Placement) CheckMemory(need Need) error {
	for local, at := range p.gpus {
		info, workers := p.Of(local), p.sharing(at)
		if float64(workers)*float64(need.total()) > float64(info.Memory) {
			return tooLittle(info, "has "+size(info.Memory), workers, need)
		}
	}
	return nil
}

// CheckFree returns an error if the GPU's free memory is too little for a worker.
func (t *GPU) CheckFree(ctx context.Context, need Need) error {
	b := t.backend
	return b.Do(ctx, func() error {
		free, total, err := b.Device().MemInfo()
		if err != nil {
			return err
		}
		return need.fits(b.Info(), free, total)
	})
}

// fits returns an error if the free memory of a GPU is too little for a worker whose
// backend is open.
func (n Need) fits(on cuda.Info, free, total uint64) error {
	n.Library -= libraryBytes // the backend has allocated that
	if uint64(n.total()) > free {
		return tooLittle(on, fmt.Sprintf("has %s free of %s", size(free), size(total)), 1, n)
	}
	return nil
}

func tooLittle(info cuda.Info, has string, workers int, need Need) error {
	who := "a worker needs"
	if workers > 1 {
		who = fmt.Sprintf("each of %d workers needs", workers)
	}
	return fmt.Errorf("GPU %d (%s) %s of memory, and %s about %v: lower --batch or evaluation.batch_size, make the model smaller, or use --device cpu",
		info.Index, info.Name, has, who, need)
}

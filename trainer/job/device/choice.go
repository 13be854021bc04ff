package device

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/ncclgroup"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nccl"
)

// The values of Choice.Device. CUDA may have a number.
const (
	Auto = "auto" // GPUs if there is one for each worker, else the CPU
	CPU  = "cpu"
	CUDA = "cuda" // worker k on GPU k; with a number, "cuda:2", on GPU 2+k
)

// A Choice says where workers compute. The zero value is the CPU.
type Choice struct {
	Device string // Auto, CPU, CUDA or CUDA with a number; "" means CPU
	Share  bool   // workers share GPUs if there are fewer GPUs than workers
	NCCL   string // whether NCCL sums vectors on GPUs: auto, must or off; "" means auto
}

// ncclUses holds the values of --nccl.
var ncclUses = map[string]ncclgroup.Use{"": ncclgroup.Auto, "auto": ncclgroup.Auto, "must": ncclgroup.Must, "off": ncclgroup.Off}

// Check reports the first mistake in f.
func (f *Choice) Check() error {
	if _, _, err := f.parse(); err != nil {
		return err
	}
	if _, known := ncclUses[f.NCCL]; !known {
		return fmt.Errorf("--nccl must be auto, must or off, not %q", f.NCCL)
	}
	return nil
}

// parse parses Device. first is the GPU of the first worker.
func (f *Choice) parse() (kind string, first int, err error) {
	switch f.Device {
	case "":
		return CPU, 0, nil
	case Auto, CPU, CUDA:
		return f.Device, 0, nil
	}
	if number, ok := strings.CutPrefix(f.Device, CUDA+":"); ok {
		if first, err = strconv.Atoi(number); err == nil && first >= 0 {
			return CUDA, first, nil
		}
	}
	return "", 0, fmt.Errorf("--device must be auto, cpu, cuda or cuda:I, where I is the number of a GPU, not %q", f.Device)
}

// Place chooses a device for each worker. Worker k gets GPU first+k, as under torchrun.
// With Share, GPUs are reused if there are too few. obstacle says why the work needs the
// CPU; nil if it does not.
func (f *Choice) Place(workers int, obstacle error, devices func() ([]cuda.Info, error)) (Placement, error) {
	kind, first, err := f.parse()
	if err != nil || kind == CPU {
		return Placement{}, err
	}
	if kind == Auto && cuda.Built() != nil {
		return Placement{}, nil
	}
	p, err := f.onGPUs(workers, first, obstacle, devices)
	switch {
	case err == nil:
		return p, nil
	case kind == Auto:
		return Placement{why: err.Error()}, nil
	}
	return Placement{}, fmt.Errorf("--device %s: %w", f.Device, err)
}

// onGPUs chooses a GPU for each worker, or returns an error that says why it cannot.
func (f *Choice) onGPUs(workers, first int, obstacle error, devices func() ([]cuda.Info, error)) (Placement, error) {
	if obstacle != nil {
		return Placement{}, obstacle
	}
	there, err := devices()
	if err != nil {
		return Placement{}, err
	}
	count := len(there) - first
	switch {
	case count < 1:
		return Placement{}, fmt.Errorf("there is no GPU %d, the GPUs are 0 to %d: check nvidia-smi and CUDA_VISIBLE_DEVICES", first, len(there)-1)
	case workers > count && !f.Share:
		return Placement{}, fmt.Errorf("%d processes for %s: start fewer, or add --share-gpu", workers, gpusFrom(first, count))
	}
	p := Placement{shared: workers > count}
	for k := range workers {
		at := first + k%count
		p.gpus, p.info = append(p.gpus, at), append(p.info, there[at])
	}
	return p, nil
}

func gpusFrom(first, count int) string {
	text := "1 GPU"
	if count > 1 {
		text = fmt.Sprintf("%d GPUs", count)
	}
	if first > 0 {
		text += fmt.Sprintf(" (from GPU %d)", first)
	}
	return text
}

// CheckPlace reports why workers at p cannot share GPUs although f asks for it.
func (f *Choice) CheckPlace(p Placement) error {
	if f.Share && !p.OnGPU() {
		return fmt.Errorf("--share-gpu needs GPUs, and the workers compute on %v", p)
	}
	return nil
}

// CheckNCCL reports, before anything starts, why NCCL cannot sum vectors although NCCL is
// "must".
func (f *Choice) CheckNCCL(p Placement, o collective.Order, ranks int) error {
	if ranks < 2 || ncclUses[f.NCCL] != ncclgroup.Must {
		return nil
	}
	if !p.OnGPU() {
		return fmt.Errorf("--nccl must: NCCL sums only on GPUs, and the workers compute on %v: use --device cuda", p)
	}
	if f.HostAdds(o) {
		return errors.New("--nccl must: NCCL does not keep ring order: remove --order ring")
	}
	if err := nccl.Available(); err != nil {
		return fmt.Errorf("--nccl must: %s", plain(err))
	}
	return nil
}

// HostAdds reports whether, by these flags, vectors on GPUs that are summed in order o are
// summed in host memory.
func (f *Choice) HostAdds(o collective.Order) bool {
	return ncclUses[f.NCCL] == ncclgroup.Off || o == collective.RingOrder
}

// Reasons why a run needs the CPU, for Choice.Place.
var (
	ErrInProcess  = errors.New("--transport inproc runs all workers in one process, and on GPUs each worker needs its own")
	ErrCompressed = errors.New("gradients are compressed in host memory: remove --compress and training.compress")
	ErrSparse     = errors.New("gradients on GPUs are sent whole: use --sparse auto, and remove training.sparse")
)

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

// What Choice.Device begins with.
const (
	Auto = "auto" // GPUs if there is one for each worker, else the CPU
	CPU  = "cpu"
	CUDA = "cuda" // worker k on GPU k; with a number, "cuda:2", on GPU 2+k
)

// A Choice is where workers compute. The zero value is the CPU.
type Choice struct {
	Device string // Auto, CPU, CUDA or CUDA with a number; "" is CPU
	Share  bool   // workers share GPUs where there are fewer GPUs than workers
	NCCL   string // auto, which "" is too, must or off: whether NCCL sums vectors on GPUs
}

// ncclUses are what --nccl may be.
var ncclUses = map[string]ncclgroup.Use{"": ncclgroup.Auto, "auto": ncclgroup.Auto, "must": ncclgroup.Must, "off": ncclgroup.Off}

// Check reports the first mistake in f.
func (f *Choice) Check() error {
	if _, _, err := f.parse(); err != nil {
		return err
	}
	if _, known := ncclUses[f.NCCL]; !known {
		return fmt.Errorf("--nccl must be auto, must or off, not %s", f.NCCL)
	}
	return nil
}

// parse splits --device. first is the GPU of the first worker.
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
	return "", 0, fmt.Errorf("--device must be auto, cpu, cuda or cuda:I with the number of a GPU from 0, not %s", f.Device)
}

// Place chooses a device for each worker. Worker k takes GPU first+k, as programs
// started by torchrun do; with Share, GPUs are reused when there are no more. hindrance
// is why the work needs the CPU, nil if it does not.
func (f *Choice) Place(workers int, hindrance error, devices func() ([]cuda.Info, error)) (Placement, error) {
	kind, first, err := f.parse()
	if err != nil || kind == CPU {
		return Placement{}, err
	}
	if kind == Auto && cuda.Built() != nil {
		return Placement{}, nil
	}
	p, err := f.spread(workers, first, hindrance, devices)
	switch {
	case err == nil:
		return p, nil
	case kind == Auto:
		return Placement{why: err.Error()}, nil
	}
	return Placement{}, fmt.Errorf("--device %s: %w", f.Device, err)
}

// spread is Place where there must be GPUs.
func (f *Choice) spread(workers, first int, hindrance error, devices func() ([]cuda.Info, error)) (Placement, error) {
	if hindrance != nil {
		return Placement{}, hindrance
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
		return Placement{}, fmt.Errorf("%d processes and %s: start fewer, or let them share with --share-gpu", workers, gpusFrom(first, count))
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
		text += fmt.Sprintf(" from GPU %d on", first)
	}
	return text
}

// CheckNCCL reports, before anything starts, why NCCL "must" sum vectors and cannot.
func (f *Choice) CheckNCCL(p Placement, o collective.Order, ranks int) error {
	if ranks < 2 || ncclUses[f.NCCL] != ncclgroup.Must {
		return nil
	}
	if !p.OnGPU() {
		return fmt.Errorf("--nccl must: NCCL adds up on GPUs, and the work is done on %v: give --device cuda", p)
	}
	if f.HostAdds(o) {
		return errors.New("--nccl must: NCCL keeps no ring order: leave --order ring out")
	}
	if err := nccl.Available(); err != nil {
		return fmt.Errorf("--nccl must: %s", plain(err))
	}
	return nil
}

// HostAdds reports, for vectors on GPUs that are added up in order o, whether the flags have the host add up what is on GPUs.
func (f *Choice) HostAdds(o collective.Order) bool {
	return ncclUses[f.NCCL] == ncclgroup.Off || o == collective.RingOrder
}

// Hindrances of a training that keep it on the CPU.
var (
	ErrInProcess  = errors.New("--transport inproc runs all workers in one process, and a GPU takes a process for each")
	ErrCompressed = errors.New("gradients are compressed in the memory of the host: leave --compress and training.compress out")
)

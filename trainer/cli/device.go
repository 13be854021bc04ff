package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/ncclgroup"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nccl"
)

// What --device begins with.
const (
	deviceAuto = "auto"
	deviceCPU  = "cpu"
	deviceCUDA = "cuda"
)

// deviceFlags are the flags of a command whose ranks may work on GPUs.
type deviceFlags struct {
	device   string // "" is cpu
	shareGPU bool
	nccl     string
}

// register adds the flags to those of a command, with a device that is the
// default.
func (f *deviceFlags) register(cmd *cobra.Command, device, what string) {
	under(cmd, machineFlags, func(flags *pflag.FlagSet) {
		flags.StringVar(&f.device, "device", device, what)
		flags.BoolVar(&f.shareGPU, "share-gpu", false, "let workers share GPUs when this machine has fewer GPUs than workers; slow, for tests")
		flags.StringVar(&f.nccl, "nccl", "auto", "sum vectors on GPUs with NCCL, `WHEN`: auto (if all ranks have it), must (or fail) or off (the host sums them, through pinned memory, in ring order)")
	})
}

// ncclUses are what --nccl may be.
var ncclUses = map[string]ncclgroup.Use{"": ncclgroup.Auto, "auto": ncclgroup.Auto, "must": ncclgroup.Must, "off": ncclgroup.Off}

// check finds what is wrong with the flags alone.
func (f *deviceFlags) check() error {
	if _, _, err := f.parse(); err != nil {
		return err
	}
	if _, known := ncclUses[f.nccl]; !known {
		return fmt.Errorf("--nccl must be auto, must or off, not %s", f.nccl)
	}
	return nil
}

// parse splits --device. first is the GPU of the first worker.
func (f *deviceFlags) parse() (kind string, first int, err error) {
	switch f.device {
	case "":
		return deviceCPU, 0, nil
	case deviceAuto, deviceCPU, deviceCUDA:
		return f.device, 0, nil
	}
	if number, ok := strings.CutPrefix(f.device, deviceCUDA+":"); ok {
		if first, err = strconv.Atoi(number); err == nil && first >= 0 {
			return deviceCUDA, first, nil
		}
	}
	return "", 0, fmt.Errorf("--device must be auto, cpu, cuda or cuda:I with the number of a GPU from 0, not %s", f.device)
}

// A placement says where the workers of this machine compute.
type placement struct {
	gpus   []int       // by worker; nil: on the CPU
	info   []cuda.Info // of gpus
	why    string      // --device auto takes no GPU; "" if none was looked for
	shared bool        // a GPU has more than one worker
}

// place chooses the devices of so many workers: worker k takes GPU first+k, as
// programs do that torchrun starts, and with --share-gpu they begin again at the
// first where there are no more. hindrance is why what they do needs the CPU.
func (f *deviceFlags) place(workers int, hindrance error, devices func() ([]cuda.Info, error)) (placement, error) {
	kind, first, err := f.parse()
	if err != nil || kind == deviceCPU {
		return placement{}, err
	}
	if kind == deviceAuto && cuda.Built() != nil {
		return placement{}, nil
	}
	p, err := f.spread(workers, first, hindrance, devices)
	switch {
	case err == nil:
		return p, nil
	case kind == deviceAuto:
		return placement{why: err.Error()}, nil
	}
	return placement{}, fmt.Errorf("--device %s: %w", f.device, err)
}

// spread is place where there must be GPUs.
func (f *deviceFlags) spread(workers, first int, hindrance error, devices func() ([]cuda.Info, error)) (placement, error) {
	if hindrance != nil {
		return placement{}, hindrance
	}
	there, err := devices()
	if err != nil {
		return placement{}, err
	}
	count := len(there) - first
	switch {
	case count < 1:
		return placement{}, fmt.Errorf("there is no GPU %d, the GPUs are 0 to %d: see what nvidia-smi says, and CUDA_VISIBLE_DEVICES", first, len(there)-1)
	case workers > count && !f.shareGPU:
		return placement{}, fmt.Errorf("%d processes and %s: start fewer, or let them share with --share-gpu", workers, gpusFrom(first, count))
	}
	p := placement{shared: workers > count}
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

// checkNCCL finds out whether NCCL that must be is here, and has something to do,
// before anything starts.
func (f *deviceFlags) checkNCCL(p placement, o orderFlags, ranks int) error {
	if ranks < 2 || ncclUses[f.nccl] != ncclgroup.Must {
		return nil
	}
	if !p.onGPU() {
		return fmt.Errorf("--nccl must: NCCL adds up on GPUs, and the work is done on %v: give --device cuda", p)
	}
	if f.hostAdds(o) {
		return errors.New("--nccl must: NCCL keeps no ring order: leave --order ring out")
	}
	if err := nccl.Available(); err != nil {
		return fmt.Errorf("--nccl must: %s", plain(err))
	}
	return nil
}

// hostAdds reports whether the flags have the host add up what is on GPUs.
func (f *deviceFlags) hostAdds(o orderFlags) bool {
	return ncclUses[f.nccl] == ncclgroup.Off || o.DeviceOrder() == collective.RingOrder
}

// onGPU reports whether the workers have GPUs.
func (p placement) onGPU() bool { return p.gpus != nil }

// of is the GPU of a worker.
func (p placement) of(local int) cuda.Info { return p.info[local] }

// sharing is how many workers have a GPU.
func (p placement) sharing(gpu int) int {
	n := 0
	for _, at := range p.gpus {
		if at == gpu {
			n++
		}
	}
	return n
}

// String is where the workers compute, for the user.
func (p placement) String() string {
	if !p.onGPU() {
		if p.why != "" {
			return "the CPU (" + p.why + ")"
		}
		return "the CPU"
	}
	var numbers []string
	for _, at := range slices.Compact(slices.Sorted(slices.Values(p.gpus))) {
		numbers = append(numbers, strconv.Itoa(at))
	}
	text := fmt.Sprintf("GPU %s (%s)", strings.Join(numbers, ", "), p.info[0].Name)
	if p.shared {
		text += ", shared"
	}
	return text
}

// environ is what NCCL must be told in the environment of a worker. It refuses
// two ranks that have one GPU of one host, so those that share say that they are
// on hosts of their own, which they then reach over sockets.
func (p placement) environ(node string, local int, alone bool) []string {
	if !p.shared {
		return nil
	}
	env := []string{fmt.Sprintf("NCCL_HOSTID=%s/%d", node, local), "NCCL_NET=Socket", "NCCL_MNNVL_ENABLE=0"}
	if alone { // no other machine
		env = append(env, "NCCL_SOCKET_IFNAME=lo")
	}
	return env
}

// Hindrances of a training that keep it on the CPU.
var (
	errInProcess  = errors.New("--transport inproc runs all workers in one process, and a GPU takes a process for each")
	errCompressed = errors.New("gradients are compressed in the memory of the host: leave --compress and training.compress out")
)

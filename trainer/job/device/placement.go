package device

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/cuda"
)

// A Placement says where the workers of this machine compute.
type Placement struct {
	gpus   []int       // by worker; nil: on the CPU
	info   []cuda.Info // of gpus
	why    string      // why --device auto chose the CPU; "" if it looked for no GPU
	shared bool        // a GPU has more than one worker
}

// OnCPU returns a Placement on the CPU. why says why it is not on GPUs; "" if no GPU was
// looked for.
func OnCPU(why string) Placement { return Placement{why: why} }

// Why returns why the workers are not on GPUs; "" if no GPU was looked for.
func (p Placement) Why() string { return p.why }

// GPU returns the number of a worker's GPU.
func (p Placement) GPU(local int) int { return p.gpus[local] }

// OnGPU reports whether the workers have GPUs.
func (p Placement) OnGPU() bool { return p.gpus != nil }

// Of describes a worker's GPU.
func (p Placement) Of(local int) cuda.Info { return p.info[local] }

// sharing returns the number of workers on a GPU.
func (p Placement) sharing(gpu int) int {
	n := 0
	for _, at := range p.gpus {
		if at == gpu {
			n++
		}
	}
	return n
}

// String says where the workers compute, for the user.
func (p Placement) String() string {
	if !p.OnGPU() {
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

// Environ returns the environment variables that NCCL needs in a worker. NCCL refuses two
// ranks on one GPU of one host, so workers that share a GPU pretend to be on different
// hosts, which NCCL connects over sockets. alone means that the job has one machine.
func (p Placement) Environ(node string, local int, alone bool) []string {
	if !p.shared {
		return nil
	}
	env := []string{fmt.Sprintf("NCCL_HOSTID=%s/%d", node, local), "NCCL_NET=Socket", "NCCL_MNNVL_ENABLE=0"}
	if alone {
		env = append(env, "NCCL_SOCKET_IFNAME=lo")
	}
	return env
}

// Trainable returns the GPUs of this machine if they can train. Training also needs
// cuBLASLt, which many machines with a driver do not have.
func Trainable() ([]cuda.Info, error) {
	there, err := cuda.Devices()
	if err != nil {
		return nil, err
	}
	if _, err := cuda.BLASVersion(); err != nil {
		return nil, err
	}
	return there, cuda.BLASMismatch()
}

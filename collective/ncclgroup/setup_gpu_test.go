//go:build gpu && cgo && linux

package ncclgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/cuda/emulator"
	"github.com/ringtrain/ringtrain/nccl"
)

// most is the largest number of ranks in a test that needs a device for each.
const most = 4

// noEmulator says why the tests cannot run; nil if they can.
var noEmulator error

// real reports whether the tests use the machine's own devices and NCCL instead of the
// emulator. Ranks share devices if there are too few.
func real() bool { return os.Getenv("RINGTRAIN_REQUIRE_GPU") != "" }

// The test binary also serves as the processes of its jobs; see process_gpu_test.go.
func TestMain(m *testing.M) {
	if os.Getenv(envWorker) != "" {
		os.Exit(worker())
	}
	if !real() {
		noEmulator = emulate()
		goleak.VerifyTestMain(m)
	}
	noEmulator = crowd()
	// Creating a context takes up to a second, so one stays open during all tests.
	_, _ = cuda.Open(0) // if this fails, the tests report it
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent())
}

// emulate makes this process and its children use the emulator.
func emulate() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	env, err := emulator.BuildShared(ctx)
	if err != nil {
		return err
	}
	for _, setting := range append(env, fmt.Sprintf("RINGTRAIN_EMULATOR_DEVICES=%d", most)) {
		name, value, _ := strings.Cut(setting, "=")
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

// shared is the first NCCL that lets ranks of one process share a device.
var shared = nccl.NewVersion(2, 30, 3)

// crowd lets ranks of one process share a device, if NCCL can. Their kernels wait for each
// other, so all must run at once: they have few blocks each, and streams do not share a queue.
func crowd() error {
	for name, value := range map[string]string{multiRank: "1", maxCTAs: "4", "CUDA_DEVICE_MAX_CONNECTIONS": "32"} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nccl.Available()
}

const (
	multiRank = "NCCL_MULTI_RANK_GPU_ENABLE"
	maxCTAs   = "NCCL_MAX_CTAS"
)

// sharing returns the variables for a rank that shares its device with other processes.
// Older versions of NCCL refuse it to ranks of the same host, so each rank claims a
// host of its own.
func sharing(v nccl.Version, rank int) []string {
	if v >= shared {
		return []string{multiRank + "=1", maxCTAs + "=4"}
	}
	return []string{fmt.Sprintf("NCCL_HOSTID=rank%d", rank), "NCCL_NET=Socket", "NCCL_SOCKET_IFNAME=lo", "NCCL_MNNVL_ENABLE=0"}
}

// emulated skips the test if there is no compiler to build the emulator.
func emulated(t *testing.T) {
	t.Helper()
	if errors.Is(noEmulator, emulator.ErrNoCompiler) {
		t.Skip(noEmulator)
	}
	require.NoError(t, noEmulator)
}

// roomy is emulated. On real devices it also skips the test if n ranks of one process
// cannot connect by NCCL because they would have to share a device.
func roomy(t *testing.T, n int, use Use) {
	t.Helper()
	emulated(t)
	if !real() || use == Off {
		return
	}
	devices, err := cuda.Devices()
	require.NoError(t, err)
	v, err := nccl.GetVersion()
	require.NoError(t, err)
	if n > len(devices) && v < shared {
		t.Skipf("%d ranks of one process on %d devices need NCCL %v or newer; this is %v", n, len(devices), shared, v)
	}
}

// A workplace is a device and a stream.
type workplace struct {
	device *cuda.Device
	stream cuda.Stream
}

// open opens the device of a rank.
func open(rank int) (*workplace, error) {
	devices, err := cuda.Devices()
	if err != nil {
		return nil, err
	}
	d, err := cuda.Open(rank % len(devices))
	if err != nil {
		return nil, err
	}
	w := &workplace{device: d}
	err = d.Do(context.Background(), func() (err error) {
		w.stream, err = d.NewStream()
		return err
	})
	return w, err
}

func (w *workplace) close() error {
	return errors.Join(w.device.Do(context.Background(), w.stream.Destroy), w.device.Close())
}

// put copies s to a Vector in device memory, which stays allocated until the device is
// closed.
func put[T collective.Element](w *workplace, s []T) (collective.Vector, error) {
	return putHost(w, collective.Of(s))
}

func putHost(w *workplace, host collective.Vector) (v collective.Vector, err error) {
	b, _ := host.Host()
	err = w.device.Do(context.Background(), func() error {
		p, err := w.device.Alloc(max(len(b), 1))
		if err != nil {
			return err
		}
		v = collective.OnDevice(w.device.Info().Index, uintptr(p), host.Len(), host.DType())
		return w.stream.Write(p, b)
	})
	return v, err
}

// get returns the contents of a Vector in device memory.
func get[T collective.Element](w *workplace, v collective.Vector) ([]T, error) {
	s := make([]T, v.Len())
	return s, getHost(w, collective.Of(s), v)
}

func getHost(w *workplace, to, v collective.Vector) error {
	b, _ := to.Host()
	_, addr, _ := v.Device()
	return w.device.Do(context.Background(), func() error { return w.stream.Read(b, cuda.Ptr(addr)) })
}

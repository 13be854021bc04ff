package device

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda"
)

// Which worker gets which GPU, and which requests are refused.
func TestOnGPUs(t *testing.T) {
	three := func() ([]cuda.Info, error) {
		return []cuda.Info{{Index: 0, Name: "A"}, {Index: 1, Name: "A"}, {Index: 2, Name: "A"}}, nil
	}
	none := func() ([]cuda.Info, error) { return nil, cuda.ErrUnavailable }
	for _, c := range []struct {
		device  string
		share   bool
		workers int
		gpus    []int
		text    string
		err     string
	}{
		{device: "cuda", workers: 1, gpus: []int{0}, text: "GPU 0 (A)"},
		{device: "cuda", workers: 3, gpus: []int{0, 1, 2}, text: "GPU 0, 1, 2 (A)"},
		{device: "cuda:1", workers: 2, gpus: []int{1, 2}, text: "GPU 1, 2 (A)"},
		{device: "cuda:2", workers: 1, gpus: []int{2}, text: "GPU 2 (A)"},
		{device: "cuda", share: true, workers: 3, gpus: []int{0, 1, 2}, text: "GPU 0, 1, 2 (A)"},
		{device: "cuda", share: true, workers: 5, gpus: []int{0, 1, 2, 0, 1}, text: "GPU 0, 1, 2 (A), shared"},
		{device: "cuda:1", share: true, workers: 3, gpus: []int{1, 2, 1}, text: "GPU 1, 2 (A), shared"},
		{device: "cuda", workers: 4, err: "4 processes for 3 GPUs: start fewer, or add --share-gpu"},
		{device: "cuda:2", workers: 2, err: "2 processes for 1 GPU (from GPU 2): start fewer"},
		{device: "cuda:3", workers: 1, share: true, err: "there is no GPU 3, the GPUs are 0 to 2"},
	} {
		f := Choice{Device: c.device, Share: c.share}
		_, first, err := f.parse()
		require.NoError(t, err)
		p, err := f.onGPUs(c.workers, first, nil, three)
		if c.err != "" {
			require.ErrorContains(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.gpus, p.gpus)
		require.Equal(t, c.text, p.String())
		for local, at := range c.gpus {
			require.Equal(t, at, p.Of(local).Index)
		}
	}
	f := Choice{Device: "cuda"}
	_, err := f.Place(1, nil, none)
	require.ErrorIs(t, err, cuda.ErrUnavailable)
	require.ErrorContains(t, err, "--device cuda: ")
	_, err = f.Place(1, ErrInProcess, three)
	require.ErrorIs(t, err, ErrInProcess)

	f.Device = "auto"
	p, err := f.Place(1, nil, none)
	require.NoError(t, err, "auto falls back to the CPU")
	require.False(t, p.OnGPU())
	if cuda.Built() == nil {
		require.Equal(t, "the CPU ("+cuda.ErrUnavailable.Error()+")", p.String())
	} else {
		require.Equal(t, "the CPU", p.String(), "a program built without GPU support does not mention GPUs")
	}
	f.Device = "cpu"
	p, err = f.Place(1, nil, func() ([]cuda.Info, error) { return nil, errors.New("not asked for") })
	require.NoError(t, err)
	require.Equal(t, Placement{}, p)
}

// Ranks that share a GPU pretend to be on different hosts.
func TestSharedEnvironment(t *testing.T) {
	require.Empty(t, Placement{gpus: []int{0, 1}}.Environ("m", 1, true))
	p := Placement{gpus: []int{0, 0}, shared: true}
	require.Equal(t, []string{"NCCL_HOSTID=m/1", "NCCL_NET=Socket", "NCCL_MNNVL_ENABLE=0", "NCCL_SOCKET_IFNAME=lo"}, p.Environ("m", 1, true))
	require.NotContains(t, p.Environ("m", 1, false), "NCCL_SOCKET_IFNAME=lo", "loopback does not reach other machines")
}

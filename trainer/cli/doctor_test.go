package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/query"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/trainer/catalog"
)

func TestDoctor(t *testing.T) {
	a, err := query.Answer("127.0.0.1:0", nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = a.Close() })
	run := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := Main(catalog.New(), append([]string{"doctor"}, args...), &out, &errs)
		return code, out.String(), errs.String()
	}
	code, stdout, stderr := run(a.Addr().String())
	require.Zero(t, code, stderr)
	for _, fact := range []string{"cores ", "memory ", "SIMD ", "products  ringtrain fma256", "clock ", "network ", "kernel ", "shared ", "GPU ", "ok        loopback", "ok        UDP from " + a.Addr().String()} {
		require.Contains(t, stdout, fact)
	}
	code, stdout, stderr = run("--json", a.Addr().String())
	require.Zero(t, code, stderr)
	var d diagnosis
	require.NoError(t, json.Unmarshal([]byte(stdout), &d))
	require.Len(t, d.Checks, 6)
	require.Positive(t, d.Machine.Cores)
	require.Equal(t, "ringtrain fma256", d.Products.Name)
	require.NotEmpty(t, d.Interfaces)
	require.Equal(t, d.GPU.Problem == "", len(d.GPU.Devices) > 0)

	require.NoError(t, a.Close())
	code, stdout, stderr = run(a.Addr().String())
	require.Equal(t, 1, code)
	require.Contains(t, stdout, "FAILED    TCP to "+a.Addr().String())
	require.Equal(t, "ringtrain: 1 of 2 checks failed\n", stderr)
	for _, args := range [][]string{{"host"}, {":7946"}, {"host:0"}, {"--listen", "7946"}, {"--listen", "192.0.2.77:1"}, {"--nosuch"}} {
		code, stdout, stderr = run(args...)
		require.Equal(t, 2, code, "%v: %s", args, stderr)
		require.Empty(t, stdout)
		require.Equal(t, 1, bytes.Count([]byte(stderr), []byte("\n")), stderr)
	}
}

// A doctor that is stopped blames nothing for it.
func TestDoctorIsCancelled(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() {
		conn, err := l.Accept()
		cancel() // while the first target does not answer
		if assert.NoError(t, err) {
			_, _ = io.Copy(io.Discard, conn)
			assert.NoError(t, conn.Close())
		}
	})
	var out bytes.Buffer
	a := &app{stdout: &output{w: &out}}
	require.ErrorIs(t, a.examine(ctx, []string{l.Addr().String(), "127.0.0.1:1"}, "", false), context.Canceled)
	work.Wait()
	require.Contains(t, out.String(), "ok        loopback")
	require.NotContains(t, out.String(), "FAILED")
	out.Reset()
	require.ErrorIs(t, a.examine(ctx, nil, "", false), context.Canceled)
	require.Empty(t, out.String())
}

func TestWriteGPUs(t *testing.T) {
	write := func(r cuda.Report) string {
		var b bytes.Buffer
		writeGPUs(&b, r)
		return b.String()
	}
	require.Equal(t, `GPU       0: NVIDIA H200, sm_90, 139.8 GiB, 132 multiprocessors
module    NVIDIA 580.159.04, in the kernel
driver    CUDA 13.0, libcuda.so.1
cuDNN     not used: there is no libcudnn.so.9: install it; without it our kernels do
NCCL      missing: there is no libnccl.so.2: install it
`, write(cuda.Report{
		Module: "580.159.04", CUDA: "13.0",
		Devices: []cuda.Info{{Name: "NVIDIA H200", Major: 9, Memory: 150111322112, Multiprocessors: 132}},
		Libraries: []cuda.Found{
			{Name: "driver", Version: "CUDA 13.0", Path: "libcuda.so.1"},
			{Name: "cuDNN", Problem: "there is no libcudnn.so.9: install it", Instead: "our kernels do"},
			{Name: "NCCL", Problem: "there is no libnccl.so.2: install it"},
		},
	}))
	require.Equal(t, "GPU       no GPU can be used: there is no libcuda.so.1\n", write(cuda.Report{
		Problem:   "no GPU can be used: there is no libcuda.so.1",
		Libraries: []cuda.Found{{Name: "driver", Problem: "there is no libcuda.so.1"}},
	}), "the problem is printed once")
}

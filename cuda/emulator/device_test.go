//go:build linux && (amd64 || arm64) && !static

package emulator

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// CUDA's error codes.
const (
	invalidValue       = 1
	outOfMemory        = 2
	invalidImage       = 200
	invalidContext     = 201
	invalidHandle      = 400
	illegalState       = 401
	notReady           = 600
	illegalAddress     = 700
	misaligned         = 716
	launchFailed       = 719
	captureUnsupported = 900
	captureInvalidated = 901
	captureUnmatched   = 903
	captureUnjoined    = 904
	captureIsolation   = 905
	captureImplicit    = 906
	capturedEvent      = 907
	captureWrongThread = 908
)

const sample = `
extern "C" __global__ void reverse(float* y, const float* x, int n) {
  __shared__ float all[64];
  int t = threadIdx.x;
  if (t < n) all[t] = x[t];
  __syncthreads();
  if (t < n) y[t] = all[n - 1 - t];
}

extern "C" __global__ void sum(float* y, const float* x, int n) {
  float s = 0.f;
  for (int i = threadIdx.x; i < n; i += 32) s += x[i];
  for (int bits = 16; bits > 0; bits /= 2) s += __shfl_xor_sync(0xffffffffu, s, bits);
  if (threadIdx.x == 0) atomicAdd(y, s);
}

extern "C" __global__ void read(float* y, const float* x, int i) { *y = x[i]; }
extern "C" __global__ void write(float* y, int i) { y[i] = 1.f; }
extern "C" __global__ void wide(float4* y) { *y = make_float4(1, 2, 3, 4); }
extern "C" __global__ void collide(float* y) { *y = (float)threadIdx.x; }
extern "C" __global__ void blocks_collide(float* y) { if (threadIdx.x == 0) *y = (float)blockIdx.x; }
extern "C" __global__ void leave(float* y) {
  if (threadIdx.x > 3) return;
  __syncthreads();
  y[threadIdx.x] = 1.f;
}
extern "C" __global__ void unwritten(float* y) {
  __shared__ float s[4];
  *y = s[1];
}
extern "C" __global__ void add(float* y, float a) { *y += a; }
`

func device(t *testing.T) *Device {
	t.Helper()
	d, err := NewDevice(stand(t), sample)
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}

// up copies v to the device.
func up(t *testing.T, d *Device, v ...float32) uintptr {
	t.Helper()
	at, err := Upload(d, v)
	require.NoError(t, err)
	return at
}

func down(t *testing.T, d *Device, at uintptr, n int) []float32 {
	t.Helper()
	v := make([]float32, n)
	require.NoError(t, Download(d, v, at))
	return v
}

func threads(n uint32) [3]uint32 { return [3]uint32{n, 1, 1} }

func TestKernels(t *testing.T) {
	d := device(t)
	x, y := up(t, d, 1, 2, 3, 4, 5), up(t, d, 0, 0, 0, 0, 0)
	require.NoError(t, d.Launch(0, "reverse", threads(1), threads(64), y, x, int32(5)))
	require.Equal(t, []float32{5, 4, 3, 2, 1}, down(t, d, y, 5))

	total := up(t, d, 100)
	require.NoError(t, d.Launch(0, "sum", threads(3), threads(32), total, x, int32(5)))
	require.Equal(t, []float32{145}, down(t, d, total, 1))
}

// Memory that was never written is NaN, both allocations and shared memory.
func TestPoison(t *testing.T) {
	d := device(t)
	y, err := d.Alloc(8)
	require.NoError(t, err)
	for _, v := range down(t, d, y, 2) {
		require.True(t, math.IsNaN(float64(v)))
	}
	z := up(t, d, 0)
	require.NoError(t, d.Launch(0, "unwritten", threads(1), threads(1), z))
	require.True(t, math.IsNaN(float64(down(t, d, z, 1)[0])))
}

// Each mistake of a kernel breaks its context for good.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		kernel string
		blocks uint32
		block  uint32
		args   func(x uintptr) []any
		want   int
	}{
		{"read past the end", "read", 1, 1, func(x uintptr) []any { return []any{x, x, int32(4)} }, illegalAddress},
		{"read before the begin", "read", 1, 1, func(x uintptr) []any { return []any{x, x, int32(-1)} }, illegalAddress},
		{"write past the end", "write", 1, 1, func(x uintptr) []any { return []any{x, int32(4)} }, illegalAddress},
		{"host memory", "read", 1, 1, func(x uintptr) []any { return []any{x, uintptr(4096), int32(0)} }, illegalAddress},
		{"no multiple of 16", "wide", 1, 1, func(x uintptr) []any { return []any{x + 4} }, misaligned},
		{"threads write one word", "collide", 1, 2, func(x uintptr) []any { return []any{x} }, launchFailed},
		{"blocks write one word", "blocks_collide", 2, 32, func(x uintptr) []any { return []any{x} }, launchFailed},
		{"threads miss a barrier", "leave", 1, 8, func(x uintptr) []any { return []any{x} }, launchFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := device(t)
			x := up(t, d, 1, 2, 3, 4)
			require.NoError(t, d.Launch(0, c.kernel, threads(c.blocks), threads(c.block), c.args(x)...))
			require.Equal(t, c.want, d.Call("cuCtxSynchronize"))
			require.Equal(t, c.want, d.Call("cuMemFree_v2", x))
		})
	}
}

func TestMemoryRules(t *testing.T) {
	d := device(t)
	x := up(t, d, 1, 2, 3, 4)
	v := make([]float32, 8)
	require.Equal(t, invalidValue, d.Call("cuMemcpyDtoH_v2", &v[0], x, 20), "past the end")
	require.Equal(t, invalidValue, d.Call("cuMemcpyHtoD_v2", x-4, &v[0], 4), "before the begin")
	require.Equal(t, invalidValue, d.Call("cuMemsetD32Async", x, 0, 5, nil))
	require.Equal(t, invalidValue, d.Call("cuMemFree_v2", x+4), "no begin of an allocation")
	require.Zero(t, d.Call("cuMemFree_v2", x))
	require.Equal(t, invalidValue, d.Call("cuMemcpyDtoH_v2", &v[0], x, 4), "after it was freed")
	require.Equal(t, invalidValue, d.Call("cuMemFree_v2", x), "twice")
	_, err := d.Alloc(1 << 40)
	var failed *Error
	require.ErrorAs(t, err, &failed)
	require.Equal(t, outOfMemory, failed.Code)
}

// Only threads that have made a context current can use it.
func TestContextRules(t *testing.T) {
	d := device(t)
	codes := make(chan int)
	go func() { codes <- d.Call("cuCtxSynchronize") }()
	require.Equal(t, invalidContext, <-codes, "of another thread")
	require.Equal(t, invalidHandle, d.Call("cuStreamSynchronize", uintptr(12345)))
	require.Equal(t, invalidImage, d.Call("cuModuleLoadData", new(uintptr), &make([]byte, 64)[0]))
}

// Destroying a context frees its memory and invalidates its handles.
func TestContextEnds(t *testing.T) {
	t.Setenv("RINGTRAIN_EMULATOR_MEMORY", "1000000")
	for range 3 {
		d, err := NewDevice(stand(t), sample)
		require.NoError(t, err)
		_, err = d.Alloc(700000)
		require.NoError(t, err)
		d.Close()
		require.Equal(t, invalidContext, d.Call("cuCtxSynchronize"))
	}
}

// Work begins late: a program that does not wait sees old data.
func TestStreamsAreAsynchronous(t *testing.T) {
	t.Setenv("RINGTRAIN_EMULATOR_PATIENCE", "60000")
	d := device(t)
	x := up(t, d, 1)
	var s, event uintptr
	require.Zero(t, d.Call("cuStreamCreate", &s, 1))
	require.Zero(t, d.Call("cuEventCreate", &event, 0))
	require.NoError(t, d.Launch(s, "add", threads(1), threads(1), x, float32(2)))
	var before [1]float32
	require.Zero(t, d.Call("cuMemcpyDtoH_v2", &before, x, 4))
	require.Equal(t, [1]float32{1}, before, "a copy does not wait for a stream that does not block")
	require.Zero(t, d.Call("cuEventRecord", event, s))
	require.Equal(t, notReady, d.Call("cuEventQuery", event))
	require.Zero(t, d.Call("cuEventSynchronize", event))
	require.Zero(t, d.Call("cuEventQuery", event))
	require.Zero(t, d.Call("cuStreamSynchronize", s))
	require.Equal(t, []float32{3}, down(t, d, x, 1))
	require.Zero(t, d.Call("cuStreamDestroy_v2", s))
	require.Equal(t, invalidHandle, d.Call("cuStreamSynchronize", s))
}

// An event orders two streams.
func TestEventsJoinStreams(t *testing.T) {
	d := device(t)
	x := up(t, d, 1)
	var a, b, event uintptr
	require.Zero(t, d.Call("cuStreamCreate", &a, 1))
	require.Zero(t, d.Call("cuStreamCreate", &b, 1))
	require.Zero(t, d.Call("cuEventCreate", &event, 2))
	require.NoError(t, d.Launch(a, "add", threads(1), threads(1), x, float32(2)))
	require.Zero(t, d.Call("cuEventRecord", event, a))
	require.Zero(t, d.Call("cuStreamWaitEvent", b, event, 0))
	require.NoError(t, d.Launch(b, "add", threads(1), threads(1), x, float32(4)))
	require.Zero(t, d.Call("cuStreamSynchronize", b))
	require.Equal(t, []float32{7}, down(t, d, x, 1))
}

func TestCompilerSpeaks(t *testing.T) {
	lib, err := Open(stand(t), "RINGTRAIN_NVRTC_LIB")
	require.NoError(t, err)
	_, log, err := lib.Compile(`extern "C" __global__ void k(float* y) { *y = nothing; }`)
	require.ErrorContains(t, err, "kernels.cu:1")
	require.Contains(t, log, "nothing")
	_, _, err = lib.Compile("", "--no-such-option")
	require.ErrorContains(t, err, "5")
	image, _, err := lib.Compile(sample, "--std=c++17", "--gpu-architecture=sm_90")
	require.NoError(t, err)
	require.NotEmpty(t, image)
}

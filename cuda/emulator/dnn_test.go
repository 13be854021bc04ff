//go:build linux && (amd64 || arm64) && !static

package emulator

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// Constants of cuDNN 9.
const (
	badParam, dnnNotSupported, executionFailed = 2000, 3000, 5000
	fmaMath                                    = 3
)

// dnn is a convolution of 2 images of 4x4 with 1 channel and 3 filters of 3x3. The result is
// 2x3x2x2.
type dnn struct {
	*Device
	lib              *Library
	handle           uintptr
	x, w, y, c       uintptr // descriptors
	scratch          uintptr
	xs, ws, ys       uintptr
	zero, one        float32
	xLen, wLen, yLen int
}

func newDNN(t *testing.T) *dnn {
	d := device(t)
	lib, err := Open(stand(t), "RINGTRAIN_CUDNN_LIB")
	require.NoError(t, err)
	parts(t, lib)
	n := &dnn{Device: d, lib: lib, one: 1, xLen: 2 * 16, wLen: 3 * 9, yLen: 2 * 3 * 4}
	require.Zero(t, lib.Call("cudnnCreate", &n.handle))
	t.Cleanup(func() { lib.Call("cudnnDestroy", n.handle) }) // the device may have failed
	require.Zero(t, lib.Call("cudnnCreateTensorDescriptor", &n.x))
	require.Zero(t, lib.Call("cudnnSetTensor4dDescriptor", n.x, 0, 0, 2, 1, 4, 4))
	require.Zero(t, lib.Call("cudnnCreateTensorDescriptor", &n.y))
	require.Zero(t, lib.Call("cudnnSetTensor4dDescriptor", n.y, 0, 0, 2, 3, 2, 2))
	require.Zero(t, lib.Call("cudnnCreateFilterDescriptor", &n.w))
	require.Zero(t, lib.Call("cudnnSetFilter4dDescriptor", n.w, 0, 0, 3, 1, 3, 3))
	require.Zero(t, lib.Call("cudnnCreateConvolutionDescriptor", &n.c))
	require.Zero(t, lib.Call("cudnnSetConvolution2dDescriptor", n.c, 0, 0, 1, 1, 1, 1, 1, 0))
	require.Zero(t, lib.Call("cudnnSetConvolutionMathType", n.c, fmaMath))
	n.xs, n.ws, n.ys = up(t, d, normals(n.xLen)...), up(t, d, normals(n.wLen)...), up(t, d, normals(n.yLen)...)
	n.scratch, err = d.Alloc(1 << 16)
	require.NoError(t, err)
	return n
}

// parts opens the libraries that cuDNN opens by name.
func parts(t *testing.T, lib *Library) {
	for _, name := range []string{"graph", "ops", "cnn"} {
		_, err := Open([]string{"PART=" + filepath.Join(filepath.Dir(lib.path), "libcudnn_"+name+".so.9")}, "PART")
		require.NoError(t, err)
	}
}

func (n *dnn) forward(algorithm int, x, w, y uintptr, bytes int) int {
	return n.lib.Call("cudnnConvolutionForward", n.handle, &n.one, n.x, x, n.w, w, n.c, algorithm, n.scratch, bytes, &n.zero, n.y, y)
}

// weights sets w.
func (n *dnn) weights(algorithm int) int {
	return n.lib.Call("cudnnConvolutionBackwardFilter", n.handle, &n.one, n.x, n.xs, n.y, n.ys, n.c, algorithm, n.scratch, 1<<16, &n.zero, n.w, n.ws)
}

// Only deterministic algorithms give the same bits twice.
func TestDNNDeterminism(t *testing.T) {
	n := newDNN(t)
	type perf struct { // cudnnConvolutionBwdFilterAlgoPerf_t
		algorithm     int32
		_             int32 // status
		_             float32
		_             uint64 // memory
		deterministic int32
		math          int32
		_             [3]int32
	}
	require.EqualValues(t, 48, unsafe.Sizeof(perf{}))
	var found [8]perf
	var count int32
	require.Zero(t, n.lib.Call("cudnnGetConvolutionBackwardFilterAlgorithm_v7", n.handle, n.x, n.y, n.c, n.w, len(found), &count, &found))
	require.EqualValues(t, 4, count)
	for _, p := range found[:count] {
		require.EqualValues(t, fmaMath, p.math)
		require.Zero(t, n.weights(int(p.algorithm)))
		first := down(t, n.Device, n.ws, n.wLen)
		require.Zero(t, n.weights(int(p.algorithm)))
		if p.deterministic == 1 {
			require.Equal(t, first, down(t, n.Device, n.ws, n.wLen), "algorithm %d", p.algorithm)
		} else {
			require.NotEqual(t, first, down(t, n.Device, n.ws, n.wLen), "algorithm %d", p.algorithm)
		}
	}
	require.Zero(t, n.lib.Call("cudnnSetConvolutionMathType", n.c, 0))
	require.Zero(t, n.lib.Call("cudnnGetConvolutionBackwardFilterAlgorithm_v7", n.handle, n.x, n.y, n.c, n.w, len(found), &count, &found))
	require.EqualValues(t, 8, count, "each for two kinds of arithmetic")
}

func TestDNNRules(t *testing.T) {
	n := newDNN(t)
	require.Zero(t, n.forward(1, n.xs, n.ws, n.ys, 1<<12))
	for name, code := range map[string][2]int{
		"too small a workspace": {n.forward(1, n.xs, n.ws, n.ys, 1<<12-1), badParam},
		"no such algorithm":     {n.forward(9, n.xs, n.ws, n.ys, 1<<16), badParam},
		"no operand":            {n.forward(0, 0, n.ws, n.ys, 0), badParam},
		"unaligned operands":    {n.forward(0, n.xs+4, n.ws, n.ys, 0), dnnNotSupported},
		"not a tensor":          {n.lib.Call("cudnnSetTensor4dDescriptor", n.w, 0, 0, 1, 1, 1, 1), badParam},
		"an empty tensor":       {n.lib.Call("cudnnSetTensor4dDescriptor", n.x, 0, 0, 0, 1, 1, 1), badParam},
		"NHWC":                  {n.lib.Call("cudnnSetTensor4dDescriptor", n.x, 1, 0, 1, 1, 1, 1), dnnNotSupported},
		"an unknown math type":  {n.lib.Call("cudnnSetConvolutionMathType", n.c, 4), badParam},
	} {
		require.Equal(t, code[1], code[0], name)
	}
	scratch := n.scratch
	n.scratch = 0
	require.Equal(t, badParam, n.forward(1, n.xs, n.ws, n.ys, 1<<12), "an invalid workspace")
	n.scratch = scratch

	require.Zero(t, n.lib.Call("cudnnSetTensor4dDescriptor", n.y, 0, 0, 2, 3, 2, 3))
	require.Equal(t, badParam, n.forward(1, n.xs, n.ws, n.ys, 1<<12), "descriptors that do not fit")
	require.Zero(t, n.lib.Call("cudnnSetTensor4dDescriptor", n.y, 0, 0, 2, 3, 2, 2))

	c := beginCapture(t, n.Device)
	require.Zero(t, n.lib.Call("cudnnSetStream", n.handle, c.s))
	require.Zero(t, n.forward(1, n.xs, n.ws, n.ys, 1<<12), "an algorithm that has run before")
	require.Equal(t, executionFailed, n.forward(0, n.xs, n.ws, n.ys, 1<<12), "an algorithm that has not")
	c.end(captureInvalidated)
	require.Zero(t, n.forward(0, n.xs, n.ws, n.ys, 1<<12))
	require.NoError(t, n.Wait())

	require.Zero(t, n.forward(1, n.xs, n.ws, n.ys+0x40, 1<<12))
	require.Equal(t, illegalAddress, n.Call("cuCtxSynchronize"), "an operand past the end of its memory")
}

// Without the libraries that it opens by name, cuDNN aborts the process.
func TestDNNWithoutItsParts(t *testing.T) {
	env := stand(t)
	if file := os.Getenv("RINGTRAIN_TEST_DNN"); file != "" {
		lib, err := Open([]string{"DNN=" + file}, "DNN")
		require.NoError(t, err)
		lib.Call("cudnnGetVersion")
		return
	}
	lib, err := Open(env, "RINGTRAIN_CUDNN_LIB")
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestDNNWithoutItsParts$")
	cmd.Env = append(os.Environ(), "RINGTRAIN_TEST_DNN="+lib.path)
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "Could not load library libcudnn_graph.so.9.")
	require.Contains(t, string(out), "SIGABRT")
}

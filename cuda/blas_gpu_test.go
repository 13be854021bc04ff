//go:build gpu && cgo && linux

package cuda

import (
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// If cuBLASLt has no kernel with the epilogue, whatever its status, Plan uses one without. If
// it has none of these either, the error gives the status, the library and what to do.
func TestNoKernelWithTheEpilogue(t *testing.T) {
	onDevice(t, func(d *Device, s Stream) {
		if os.Getenv(Driver.Variable) == "" {
			t.Skip("needs the emulator, which can return any status")
		}
		blas, err := d.NewBLAS(BLASOptions{Workspace: 1 << 20})
		require.NoError(t, err)
		p := Product{M: 4, N: 4, K: 2, A: put(t, d, s, []float32{1, 2, 3, 4, 5, 6, 7, 8}), B: put(t, d, s, make([]float32, 8)), C: alloc(t, d, 64),
			Bias: put(t, d, s, make([]float32, 4)), Mask: alloc(t, d, MaskBytes(4, 4))}
		// All of cublasStatus_t, and an unknown one.
		for _, status := range []int{0, 1, 3, 7, 8, 11, 13, 14, 15, 16, 99} {
			t.Setenv("RINGTRAIN_EMULATOR_LT_STATUS", strconv.Itoa(status))
			t.Setenv("RINGTRAIN_EMULATOR_LT_PLAIN", "1")
			t.Setenv("RINGTRAIN_EMULATOR_LT_KERNELS", "1")
			for _, p.Epilogue = range []Epilogue{Bias, BiasRelu, BiasReluMask, ReluGrad, RowSums} {
				plan, err := blas.Plan(s, p)
				require.NoError(t, err, "status %d, %v", status, p.Epilogue)
				require.False(t, plan.Fused())
				require.NoError(t, plan.Run(s))
				require.Equal(t, make([]float32, 16), take(t, s, p.C, 16))
				plan.Destroy()
			}
			t.Setenv("RINGTRAIN_EMULATOR_LT_KERNELS", "0")
			for _, p.Epilogue = range []Epilogue{None, Bias} {
				_, err := blas.Plan(s, p)
				want := &Error{Call: "cublasLtMatmulAlgoGetHeuristic", Name: "CUBLAS_STATUS_NOT_SUPPORTED"}
				if status != 0 {
					want.Name = statusName(status)
				}
				require.ErrorIs(t, err, want, "status %d", status)
				require.ErrorContains(t, err, "cuBLASLt 13.0.0 ("+os.Getenv(CublasLt.Variable)+") has no kernel for it: ")
				require.ErrorContains(t, err, CublasLt.Variable)
			}
		}
		require.NoError(t, blas.Destroy())
	})
}

// If cuBLASLt is for a newer CUDA than the driver, it does not start, and the error gives
// both versions.
func TestBLASNewerThanTheDriver(t *testing.T) {
	onDevice(t, func(d *Device, s Stream) {
		if os.Getenv(Driver.Variable) == "" {
			t.Skip("needs the emulator, which can report any version")
		}
		loaded.Lock()
		version := loaded.version
		loaded.version = 12080
		loaded.Unlock()
		defer func() {
			loaded.Lock()
			loaded.version = version
			loaded.Unlock()
		}()
		t.Setenv("RINGTRAIN_EMULATOR_DRIVER", "12080")
		_, err := d.NewBLAS(BLASOptions{})
		require.ErrorIs(t, err, &Error{Call: "cublasLtCreate", Name: "CUBLAS_STATUS_NOT_INITIALIZED"})
		require.ErrorContains(t, err, "is newer than the driver, which supports only CUDA 12.8: update the NVIDIA driver, or set RINGTRAIN_CUBLASLT_LIB to one of CUDA 12")
		require.Equal(t, blasMismatch().Error(), inspectBLAS().Problem)

		t.Setenv("RINGTRAIN_EMULATOR_LT", "12.9.1")
		blas, err := d.NewBLAS(BLASOptions{})
		require.NoError(t, err)
		require.NoError(t, blas.Destroy())
		require.Equal(t, "12.9.1", inspectBLAS().Version)
		require.Empty(t, inspectBLAS().Problem)
	})
}

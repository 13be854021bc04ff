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
				require.Equal(t, make([]float32, 16), fetch(t, s, p.C, 16))
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

// Plan skips candidates that fail. If all fail, the error gives the first failure.
func TestCandidatesThatFail(t *testing.T) {
	onDevice(t, func(d *Device, s Stream) {
		if os.Getenv(Driver.Variable) == "" {
			t.Skip("needs the emulator, which can refuse a candidate")
		}
		p := Product{M: 2, N: 2, K: 2, A: put(t, d, s, []float32{1, 2, 3, 4}), B: put(t, d, s, []float32{5, 6, 7, 8}), C: alloc(t, d, 16)}
		for refused, allowed := range map[string][]int{"0": {1, 2}, "1": {0, 2}, "01": {2}, "012": nil} {
			t.Setenv("RINGTRAIN_EMULATOR_LT_REFUSES", refused)
			blas, err := d.NewBLAS(BLASOptions{Workspace: 1 << 20})
			require.NoError(t, err)
			plan, err := blas.Plan(s, p)
			if allowed == nil {
				require.ErrorIs(t, err, &Error{Call: "cublasLtMatmul", Name: "CUBLAS_STATUS_NOT_SUPPORTED"})
				require.ErrorContains(t, err, "none of the 3 candidates of cuBLASLt 13.0.0 ("+os.Getenv(CublasLt.Variable)+") works: update it, or set "+CublasLt.Variable+" to another file: candidate 0: cublasLtMatmul: ")
				require.Empty(t, blas.Choices())
			} else {
				require.NoError(t, err, "without %s", refused)
				require.Contains(t, allowed, blas.Choices()[blas.Kind(p)], "without %s", refused)
				require.NoError(t, plan.Run(s))
				require.Equal(t, []float32{19, 22, 43, 50}, fetch(t, s, p.C, 4))
				plan.Destroy()
			}
			require.NoError(t, blas.Destroy())
		}
	})
}

// If the device fails, Plan returns that failure, and does not blame cuBLASLt.
func TestPlanOnAFailedDevice(t *testing.T) {
	need(t, Available())
	if os.Getenv(Driver.Variable) == "" {
		t.Skip("needs the emulator, whose device recovers when its last context is gone")
	}
	d, err := Open(0)
	require.NoError(t, err)
	require.NoError(t, d.Do(t.Context(), func() error {
		s, err := d.NewStream()
		require.NoError(t, err)
		blas, err := d.NewBLAS(BLASOptions{Workspace: 1 << 20})
		require.NoError(t, err)
		const nowhere = 64
		_, err = blas.Plan(s, Product{M: 2, N: 2, K: 2, A: nowhere, B: nowhere, C: nowhere})
		require.ErrorIs(t, err, ErrIllegalAddress)
		require.NotContains(t, err.Error(), "candidate")
		return nil
	}))
	_ = d.Close() // may report the failure again
	onDevice(t, func(d *Device, s Stream) { require.NoError(t, s.Sync(t.Context())) })
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
		problem := inspectBLAS().Problem // opens the library
		require.Equal(t, blasMismatch().Error(), problem)

		t.Setenv("RINGTRAIN_EMULATOR_LT", "12.9.1")
		blas, err := d.NewBLAS(BLASOptions{})
		require.NoError(t, err)
		require.NoError(t, blas.Destroy())
		require.Equal(t, "12.9.1", inspectBLAS().Version)
		require.Empty(t, inspectBLAS().Problem)
	})
}

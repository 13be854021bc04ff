package cuda

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestErrors(t *testing.T) {
	err := error(&Error{Call: "cuStreamSynchronize", Name: "CUDA_ERROR_ILLEGAL_ADDRESS", Text: "an illegal memory access was encountered", Code: 700})
	require.EqualError(t, err, "cuStreamSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered")
	require.EqualError(t, &Error{Call: "cublasLtMatmul", Name: "CUBLAS_STATUS_14"}, "cublasLtMatmul: CUBLAS_STATUS_14")
	wrapped := fmt.Errorf("step 3: %w", err)
	require.ErrorIs(t, wrapped, ErrIllegalAddress)
	require.NotErrorIs(t, wrapped, ErrOutOfMemory)
	require.ErrorIs(t, wrapped, &Error{Call: "cuStreamSynchronize", Name: "CUDA_ERROR_ILLEGAL_ADDRESS"})
	require.NotErrorIs(t, wrapped, &Error{Call: "cuStreamQuery", Name: "CUDA_ERROR_ILLEGAL_ADDRESS"})
	var e *Error
	require.ErrorAs(t, wrapped, &e)
	require.Equal(t, 700, e.Code)

	refused := &CompileError{"k.cu", &Error{Call: "nvrtcCompileProgram", Name: "NVRTC_ERROR_COMPILATION", Code: 6}, "k.cu(3): error: x\n\n"}
	require.EqualError(t, refused, "compiling k.cu: nvrtcCompileProgram: NVRTC_ERROR_COMPILATION\nk.cu(3): error: x")
	require.ErrorIs(t, refused, &Error{Name: "NVRTC_ERROR_COMPILATION"})
}

// Each failure of the driver's initialization says in one line what to do.
func TestWhyNot(t *testing.T) {
	for name, do := range advice {
		err := whyNot(&Error{Call: "cuInit", Name: name})
		require.ErrorIs(t, err, &Error{Name: name})
		require.ErrorContains(t, err, do)
		require.NotContains(t, err.Error(), "\n")
	}
	require.ErrorContains(t, whyNot(&Error{Call: "cuInit", Name: "CUDA_ERROR_NEW"}), "nvidia-smi")
}

func TestArena(t *testing.T) {
	a := NewArena(4096, 1000)
	first, err := a.Alloc(1)
	require.NoError(t, err)
	require.EqualValues(t, 4096, first)
	mark := a.Used()
	second, err := a.Alloc(256)
	require.NoError(t, err)
	require.EqualValues(t, 4096+256, second)
	third, err := a.Alloc(488) // the rest, which is not a multiple of 256
	require.NoError(t, err)
	require.EqualValues(t, 4096+512, third)
	require.Equal(t, 1000, a.Used())
	_, err = a.Alloc(1)
	require.ErrorIs(t, err, ErrOutOfMemory)
	require.ErrorContains(t, err, "1000 bytes, 1000 of them used, has no room for 1")
	_, err = a.Alloc(-1)
	require.Error(t, err)

	a.Rewind(mark)
	again, err := a.Alloc(744)
	require.NoError(t, err)
	require.Equal(t, second, again)
	a.Rewind(0)
	a.Rewind(5000)
	require.Zero(t, a.Used(), "it cannot move forward")
	require.Equal(t, 1000, a.Most())
	nothing, err := a.Alloc(0)
	require.NoError(t, err)
	require.EqualValues(t, 4096, nothing)
}

func TestTargetFor(t *testing.T) {
	known := []int{75, 80, 86, 90, 100}
	for arch, want := range map[string]string{"sm_90": "sm_90", "sm_89": "compute_86", "sm_121": "compute_100"} {
		got, err := targetFor(arch, known)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	got, err := targetFor("sm_90", nil)
	require.NoError(t, err)
	require.Equal(t, "sm_90", got, "NVRTC does not say what it knows")
	_, err = targetFor("sm_70", known)
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorContains(t, err, "oldest is sm_75")
	for _, arch := range []string{"", "90", "sm_", "sm_x"} {
		_, err = targetFor(arch, known)
		require.ErrorContains(t, err, "want sm_")
	}
}

func TestArgsAreBits(t *testing.T) {
	require.EqualValues(t, 0x3f800000, Float32(1).word)
	require.EqualValues(t, 0xffffffff, Int32(-1).word)
	require.EqualValues(t, ^uint64(0), Int64(-1).word)
	require.EqualValues(t, 1<<40, Ptr(1<<40).Arg().word)
	require.EqualValues(t, 7, Uint32(7).word)
	require.EqualValues(t, 8, Uint64(8).word)
	require.Equal(t, Arg{2<<32 | 1, []uint64{3}}, Struct(struct{ a, b, c int32 }{1, 2, 3}))
	require.Equal(t, Arg{5, []uint64{}}, Struct([1]uint8{5}))
}

func TestBatch(t *testing.T) {
	var b Batch
	require.NoError(t, b.Launch(Stream{}), "there is nothing to launch")
	f, g := Function{0x10, "f"}, Function{0x20, "g"}
	b.Add(f, Dim{X: 3}, Dim{256, 2, 1}, 1024, Uint32(1), Struct([2]uint64{2, 3}))
	b.Add(g, Dim{}, Dim{}, 0)
	require.Equal(t, 2, b.Len())
	require.Equal(t, []command{
		{0x10, Dim{3, 1, 1}, Dim{256, 2, 1}, 1024, 2},
		{0x20, Dim{1, 1, 1}, Dim{1, 1, 1}, 0, 0},
	}, b.commands)
	require.Equal(t, []uint64{1, 2, 3}, b.words)
	require.Equal(t, []uint32{1, 2}, b.widths)
	b.Reset()
	require.Zero(t, b.Len())
	b.Add(f, Dim{}, Dim{}, 0, make([]Arg, maxArgs+1)...)
	require.ErrorContains(t, b.Launch(Stream{}), "kernel f has 33 arguments, more than the limit of 32")
}

func TestPinnedParts(t *testing.T) {
	host := make([]float32, 4)
	m := &Pinned{p: unsafe.Pointer(&host[0]), bytes: 16}
	m.Float32s()[3] = 1
	require.Equal(t, int32(0x3f800000), m.Int32s()[3])
	require.Equal(t, uint32(0x3f800000), m.Uint32s()[3])
	require.Len(t, m.Bytes(), 16)
	p, err := m.part(12, 4)
	require.NoError(t, err)
	require.Equal(t, unsafe.Pointer(&host[3]), p)
	for _, wrong := range [][2]int{{13, 4}, {-1, 4}, {0, 17}, {0, -1}, {1 << 62, 1 << 62}} {
		_, err := m.part(wrong[0], wrong[1])
		require.ErrorContains(t, err, "which has 16", "%v", wrong)
	}
}

func TestBytesOf(t *testing.T) {
	require.Equal(t, []byte{1, 0, 0, 0, 2, 0, 0, 0}, BytesOf([]int32{1, 2}))
	require.Empty(t, BytesOf([]float32(nil)))
}

func TestMaskBytes(t *testing.T) {
	require.Equal(t, 3*16, MaskBytes(3, 1))
	require.Equal(t, 3*16, MaskBytes(3, 128))
	require.Equal(t, 3*32, MaskBytes(3, 129))
}

func TestProductKeys(t *testing.T) {
	p := Product{M: 128, N: 10, K: 64, TransB: true, Epilogue: Bias}
	require.Equal(t, "128x10x64 nt f32 bias beta 0", p.key(false))
	require.Equal(t, "128x10x64 nt tf32 bias beta 0", p.key(true))
	p.Type = BFloat16s
	require.Equal(t, "128x10x64 nt bf16 bias beta 0", p.key(true))
	p.Type = BFloat16Factors
	require.Equal(t, "128x10x64 nt bf16 to f32 bias beta 0", p.key(true))
	p.Type = BFloat16s
	p.A, p.B, p.C = 256, 64, 1<<40 // better alignment does not change the kind
	require.Equal(t, "128x10x64 nt bf16 bias beta 0", p.key(true))
	p.B = 1<<40 + 8
	require.Equal(t, "128x10x64 nt bf16 bias beta 0 at multiples of 8", p.key(true))
	for at, fits := range map[Ptr]bool{0: true, 64: true, 16: true, 8: false, 4: false} {
		require.Equal(t, fits, Product{Bias: at}.fusible())
		require.Equal(t, fits, Product{Mask: at, Bias: 32}.fusible())
	}
}

func TestVersions(t *testing.T) {
	require.Equal(t, "13.0", versionText(13000))
	require.Equal(t, "11.4", versionText(11040))
	require.Equal(t, "11.11.3", blasVersionText(111103))
	require.Equal(t, "13.0.2", blasVersionText(130002))
	require.Equal(t, 13, major("libnvrtc.so.13"))
	require.Equal(t, 11, major("libnvrtc.so.11.2"))
}

func TestModuleOf(t *testing.T) {
	for text, want := range map[string]string{
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.54.03  Tue Jun  6 22:20:39 UTC 2023\nGCC version: gcc 12.2.0\n":   "535.54.03",
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (dvs-builder@U22-I3-AE18-23-3)\n": "580.159.04",
		"something else\n": "something else",
		"":                 "",
	} {
		require.Equal(t, want, moduleOf(text))
	}
}

// pollUntil checks at once, polls until the work is done, and stops when ctx ends.
func TestPollUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, pollUntil(t.Context(), func() (bool, error) { return true, nil }))

		broken := errors.New("broken")
		require.ErrorIs(t, pollUntil(t.Context(), func() (bool, error) { return false, broken }), broken)

		begin, looks := time.Now(), 0
		require.NoError(t, pollUntil(t.Context(), func() (bool, error) {
			looks++
			if looks < 1000 { // let a check take time, or the fake clock would never advance
				<-time.After(time.Microsecond)
			}
			return time.Since(begin) > 10*time.Millisecond, nil
		}))
		require.Less(t, looks, 1000, "there are pauses after a while")

		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(broken) })
		require.ErrorIs(t, pollUntil(ctx, func() (bool, error) { <-time.After(time.Microsecond); return false, nil }), broken)
	})
}

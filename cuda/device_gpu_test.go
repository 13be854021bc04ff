//go:build gpu && cgo && linux

package cuda

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda/emulator"
)

// TestMain uses the machine's GPU if there is one, and the emulator otherwise.
// RINGTRAIN_REQUIRE_GPU=1 is for machines that must have a GPU.
func TestMain(m *testing.M) {
	if err := Available(); err != nil && os.Getenv("RINGTRAIN_REQUIRE_GPU") == "" {
		var env []string
		env, noEmulator = emulator.BuildShared(context.Background())
		for _, setting := range env {
			name, value, _ := strings.Cut(setting, "=")
			_ = os.Setenv(name, value) // fails only for invalid names
		}
	}
	os.Exit(run(m))
}

// run runs the tests. On a real GPU, creating a context can take a second, so run holds one
// for all tests.
func run(m *testing.M) int {
	if os.Getenv("RINGTRAIN_REQUIRE_GPU") != "" {
		if d, err := Open(0); err == nil { // otherwise the tests report the error
			defer d.Close()
		}
	}
	return m.Run()
}

// noEmulator is why there is no emulator.
var noEmulator error

// need skips a test if err is not nil. It fails the test instead if the machine must have a
// GPU, or if the emulator could not be built for another reason than a missing compiler.
func need(t testing.TB, err error) {
	t.Helper()
	if err != nil && noEmulator != nil {
		if !errors.Is(noEmulator, emulator.ErrNoCompiler) {
			t.Fatal(noEmulator)
		}
		err = errors.Join(noEmulator, err)
	}
	if err != nil && os.Getenv("RINGTRAIN_REQUIRE_GPU") != "" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip(err)
	}
}

// onDevice runs fn on the thread of device 0, with a stream.
func onDevice(t testing.TB, fn func(d *Device, s Stream)) {
	t.Helper()
	need(t, Available())
	d, err := Open(0)
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	require.NoError(t, d.Do(t.Context(), func() error {
		s, err := d.NewStream()
		require.NoError(t, err)
		fn(d, s)
		return s.Destroy()
	}))
}

func alloc(t testing.TB, d *Device, bytes int) Ptr {
	t.Helper()
	p, err := d.Alloc(bytes)
	require.NoError(t, err)
	t.Cleanup(func() { require.Zero(t, p%arenaAlign) })
	return p
}

// put copies values to new device memory.
func put(t *testing.T, d *Device, s Stream, values []float32) Ptr {
	t.Helper()
	p := alloc(t, d, max(4*len(values), 4))
	require.NoError(t, s.Write(p, BytesOf(values)))
	return p
}

func fetch(t *testing.T, s Stream, p Ptr, n int) []float32 {
	t.Helper()
	values := make([]float32, n)
	require.NoError(t, s.Read(BytesOf(values), p))
	return values
}

func TestDevices(t *testing.T) {
	onDevice(t, func(d *Device, s Stream) {
		infos, err := Devices()
		require.NoError(t, err)
		require.Equal(t, infos[0], d.Info())
		require.NotEmpty(t, d.Info().Name)
		require.Positive(t, d.Info().Memory)
		require.Regexp(t, `^sm_\d+$`, d.Info().Arch())
		free, total, err := d.MemInfo()
		require.NoError(t, err)
		require.LessOrEqual(t, free, total)
		_, err = Open(len(infos))
		require.ErrorIs(t, err, ErrUnavailable)
		require.ErrorContains(t, err, "the devices are 0 to")
		r := Inspect()
		require.Empty(t, r.Problem)
		require.Equal(t, infos, r.Devices)
		require.NotEmpty(t, r.Libraries[0].Version)
	})
}

func TestCopies(t *testing.T) {
	onDevice(t, func(d *Device, s Stream) {
		want := []float32{1, -2, 3, float32(math.Inf(1)), 5}
		p := put(t, d, s, want)
		require.Equal(t, want, fetch(t, s, p, 5))
		q := alloc(t, d, 20)
		require.NoError(t, s.Copy(q, p, 20))
		require.NoError(t, s.Zero(p, 8))
		require.NoError(t, s.Fill(p+8, math.Float32bits(7), 2))
		require.Equal(t, []float32{0, 0, 7, 7, 5}, fetch(t, s, p, 5))
		require.Equal(t, want, fetch(t, s, q, 5))

		m, err := d.AllocPinned(64, false)
		require.NoError(t, err)
		require.Equal(t, make([]byte, 64), m.Bytes(), "zeroed")
		require.Zero(t, m.Device())
		m.Float32s()[3] = 9
		require.NoError(t, s.CopyIn(p, m, 12, 4))
		require.NoError(t, s.CopyOut(m, 40, p, 20))
		require.NoError(t, s.Sync(t.Context()))
		require.Equal(t, []float32{9, 0, 7, 7, 5}, m.Float32s()[10:15])
		require.Error(t, s.CopyOut(m, 48, p, 20), "beyond the end")
		require.NoError(t, m.Free())

		mapped, err := d.AllocPinned(4, true)
		require.NoError(t, err)
		require.NotZero(t, mapped.Device())
		require.NoError(t, mapped.Free())

		for _, nothing := range []error{s.Copy(q, p, 0), s.Zero(p, 0), s.Fill(p, 0, 0), s.Write(p, nil), s.Read(nil, p), d.Free(q), d.Free(p)} {
			require.NoError(t, nothing)
		}
		_, err = d.Alloc(1 << 50)
		require.ErrorIs(t, err, ErrOutOfMemory)
		require.ErrorContains(t, err, "1125899906842624 bytes on device 0: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY")
	})
}

const testKernels = `
struct Line { float slope; int skip; float offset; };
extern "C" __global__ void line(float *y, const float *x, unsigned n, Line l) {
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
		if ((int)i >= l.skip) y[i] = l.slope * x[i] + l.offset;
}
extern "C" __global__ void count(unsigned long long *n, int by) {
	if (blockIdx.x == 0 && threadIdx.x == 0) *n += by;
}
`

// kernels compiles and loads testKernels.
func kernels(t testing.TB, d *Device) Module {
	t.Helper()
	needNVRTC(t)
	image, err := d.Compile(NewCache(t.TempDir()), Source{Name: "test.cu", Text: testKernels})
	require.NoError(t, err)
	m, err := d.Load(image)
	require.NoError(t, err)
	return m
}

func kernel(t testing.TB, m Module, name string) Function {
	t.Helper()
	f, err := m.Function(name)
	require.NoError(t, err)
	return f
}

type line struct {
	slope  float32
	skip   int32
	offset float32
}

func TestKernels(t *testing.T) {
	onDevice(t, func(d *Device, s Stream) {
		m := kernels(t, d)
		f, c := kernel(t, m, "line"), kernel(t, m, "count")
		require.Equal(t, "line", f.Name())
		usage, err := f.Usage()
		require.NoError(t, err)
		require.Positive(t, usage.MaxThreads)

		x := put(t, d, s, []float32{1, 2, 3, 4, 5})
		y, n := alloc(t, d, 20), alloc(t, d, 8)
		require.NoError(t, s.Zero(n, 8))
		var b Batch
		b.Add(f, Dim{X: 2}, Dim{X: 32}, 0, y.Arg(), x.Arg(), Uint32(5), Struct(line{2, 0, 1}))
		b.Add(f, Dim{X: 1}, Dim{X: 32}, 64, x.Arg(), y.Arg(), Uint32(5), Struct(line{10, 3, 0}))
		b.Add(c, Dim{}, Dim{}, 0, n.Arg(), Int32(-3))
		require.NoError(t, b.Launch(s))
		require.NoError(t, s.Sync(t.Context()))
		require.Equal(t, []float32{3, 5, 7, 9, 11}, fetch(t, s, y, 5))
		require.Equal(t, []float32{1, 2, 3, 90, 110}, fetch(t, s, x, 5), "the launches are in order")
		counted := make([]int64, 1)
		require.NoError(t, s.Read(BytesOf(counted), n))
		require.EqualValues(t, -3, counted[0])

		_, err = m.Function("nosuch")
		require.ErrorIs(t, err, &Error{Name: "CUDA_ERROR_NOT_FOUND"})
		require.ErrorContains(t, err, "kernel nosuch: cuModuleGetFunction")
		b.Reset()
		b.Add(c, Dim{}, Dim{}, 0, n.Arg(), Int32(1))
		b.Add(f, Dim{}, Dim{X: 4096}, 0, y.Arg(), x.Arg(), Uint32(5), Struct(line{}))
		err = b.Launch(s)
		require.ErrorContains(t, err, "kernel line, grid {1 1 1} of blocks {4096 1 1}, 0 bytes of shared memory: cuLaunchKernel: CUDA_ERROR_INVALID_VALUE")
		_, err = d.Load([]byte("no image"))
		var e *Error
		require.ErrorAs(t, err, &e)
		require.NoError(t, m.Unload())
	})
}

func TestGraphs(t *testing.T) {
	onDevice(t, func(d *Device, s Stream) {
		m := kernels(t, d)
		c := kernel(t, m, "count")
		n := alloc(t, d, 8)
		require.NoError(t, s.Zero(n, 8))
		require.NoError(t, s.Sync(t.Context()))
		count := func() int64 {
			v := make([]int64, 1)
			require.NoError(t, s.Read(BytesOf(v), n))
			return v[0]
		}
		var b Batch
		b.Add(c, Dim{}, Dim{}, 0, n.Arg(), Int32(1))
		b.Add(c, Dim{}, Dim{}, 0, n.Arg(), Int32(10))
		g, err := s.Capture(func() error {
			recording, err := s.Capturing()
			require.NoError(t, err)
			require.True(t, recording)
			return b.Launch(s)
		})
		require.NoError(t, err)
		require.Equal(t, 2, g.Nodes())
		require.Zero(t, count(), "recorded, not done")
		require.NoError(t, g.Upload(s))
		for range 5 {
			require.NoError(t, g.Launch(s))
		}
		require.EqualValues(t, 55, count())
		require.NoError(t, g.Destroy())

		// The stream works after every kind of failed capture.
		broken := errors.New("broken")
		_, err = s.Capture(func() error { return errors.Join(b.Launch(s), broken) })
		require.ErrorIs(t, err, broken)
		_, err = s.Capture(func() error { return s.Sync(context.Background()) })
		require.ErrorContains(t, err, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")
		require.ErrorIs(t, err, ErrCaptureInvalidated)
		require.PanicsWithValue(t, "x", func() { _, _ = s.Capture(func() error { panic("x") }) })
		recording, err := s.Capturing()
		require.NoError(t, err)
		require.False(t, recording)
		require.EqualValues(t, 55, count())
		require.NoError(t, m.Unload())
	})
}

func TestStreamsAndEvents(t *testing.T) {
	onDevice(t, func(d *Device, s Stream) {
		other, err := d.NewStream()
		require.NoError(t, err)
		begin, err := d.NewEvent(true)
		require.NoError(t, err)
		end, err := d.NewEvent(true)
		require.NoError(t, err)
		p := alloc(t, d, 1<<20)
		require.NoError(t, begin.Record(s))
		require.NoError(t, s.Fill(p, math.Float32bits(3), 1<<18))
		require.NoError(t, end.Record(s))
		require.NoError(t, other.Wait(end))
		require.Equal(t, []float32{3}, fetch(t, other, p+1<<20-4, 1))
		require.NoError(t, end.Sync(t.Context()))
		require.NoError(t, end.Sync(context.Background()))
		for _, look := range []func() (bool, error){end.Done, s.Done, other.Done} {
			done, err := look()
			require.NoError(t, err)
			require.True(t, done)
		}
		took, err := end.Since(begin)
		require.NoError(t, err)
		require.GreaterOrEqual(t, took, took*0)
		for _, err := range []error{begin.Destroy(), end.Destroy(), other.Destroy()} {
			require.NoError(t, err)
		}
	})
}

// Calls on another thread fail, because it has no context.
func TestOtherThread(t *testing.T) {
	onDevice(t, func(d *Device, s Stream) {
		failed := make(chan error)
		go func() {
			runtime.LockOSThread() // the thread ends with the goroutine
			_, err := d.Alloc(4)
			failed <- err
		}()
		require.ErrorIs(t, <-failed, ErrInvalidContext)
	})
}

// reference computes a product, and the sums of the rows of op(A), by definition.
func reference(p Product, c, a, b []float32) (product, sums []float64) {
	product, sums = make([]float64, p.M*p.N), make([]float64, p.M)
	for i := range p.M {
		for l := range p.K {
			x := a[i*p.K+l]
			if p.TransA {
				x = a[l*p.M+i]
			}
			sums[i] += float64(x)
			for j := range p.N {
				y := b[l*p.N+j]
				if p.TransB {
					y = b[j*p.K+l]
				}
				product[i*p.N+j] += float64(x) * float64(y)
			}
		}
		for j := range p.N {
			product[i*p.N+j] += float64(p.Beta) * float64(c[i*p.N+j])
		}
	}
	return product, sums
}

func TestProducts(t *testing.T) {
	onDevice(t, func(d *Device, s Stream) {
		_, err := CublasLt.Open(nil)
		need(t, err)
		blas, err := d.NewBLAS(BLASOptions{Workspace: 4 << 20})
		require.NoError(t, err)
		random := rand.New(rand.NewPCG(1, 2))
		numbers := func(n int) []float32 {
			v := make([]float32, n)
			for i := range v {
				v[i] = random.Float32()*2 - 1
			}
			return v
		}
		const m, n, k = 24, 16, 32
		a, b, c, bias := numbers(m*k), numbers(k*n), numbers(m*n), numbers(max(m, n))
		mask := alloc(t, d, MaskBytes(m, n)) // its layout is cuBLASLt's own
		var relu []float32                   // the result of the product that wrote the mask
		for _, p := range []Product{
			{}, {TransA: true}, {TransB: true}, {TransA: true, TransB: true}, {Beta: 1}, {TransB: true, Beta: .5},
			{TransB: true, Epilogue: Bias}, {TransB: true, Epilogue: BiasRelu}, {TransB: true, Epilogue: BiasReluMask},
			{Epilogue: ReluGrad}, // with the mask of the product before
			{TransA: true, Epilogue: RowSums},
		} {
			p.M, p.N, p.K = m, n, k
			key := p.key(false) // not a subtest, which would run on another thread
			p.A, p.B, p.C = put(t, d, s, a), put(t, d, s, b), put(t, d, s, c)
			if p.Epilogue != None && p.Epilogue != ReluGrad {
				p.Bias = put(t, d, s, bias)
			}
			if p.Epilogue == BiasReluMask || p.Epilogue == ReluGrad {
				p.Mask = mask
			}
			if p.Epilogue == ReluGrad && relu == nil {
				continue
			}
			plan, err := blas.Plan(s, p)
			require.NoError(t, err, key)
			require.NoError(t, s.Write(p.C, BytesOf(c)), "choosing may have changed it")
			g, err := s.Capture(func() error { return plan.Run(s) })
			require.NoError(t, err, key)
			require.NoError(t, g.Launch(s))
			got := fetch(t, s, p.C, m*n)
			require.NoError(t, g.Destroy())

			want, sums := reference(p, c, a, b)
			if !plan.Fused() {
				t.Logf("%s: there is no kernel with the epilogue", key)
				p.Epilogue = None
			}
			plan.Destroy()
			for i := range want {
				switch p.Epilogue {
				case Bias:
					want[i] += float64(bias[i%n])
				case BiasRelu, BiasReluMask:
					want[i] = max(0, want[i]+float64(bias[i%n]))
				case ReluGrad:
					if relu[i] == 0 {
						want[i] = 0
					}
				}
				require.InDelta(t, want[i], got[i], 1e-5, "%s: element %d", key, i)
			}
			switch p.Epilogue {
			case RowSums:
				for i, got := range fetch(t, s, p.Bias, m) {
					require.InDelta(t, sums[i], got, 1e-5, "sum %d", i)
				}
			case BiasReluMask:
				relu = got
			}
		}
		chosen := blas.Choices()
		require.Contains(t, chosen, "24x16x32 nt f32 bias beta 0")
		require.NoError(t, blas.Destroy())

		for choice, want := range map[int]string{0: "", 99: "from another device or another cuBLASLt"} {
			again, err := d.NewBLAS(BLASOptions{Workspace: 1 << 20, Choices: map[string]int{"24x16x32 nn f32 none beta 0": choice}})
			require.NoError(t, err)
			plan, err := again.Plan(s, Product{M: m, N: n, K: k, A: put(t, d, s, a), B: put(t, d, s, b), C: put(t, d, s, c)})
			if want == "" {
				require.NoError(t, err)
				require.NoError(t, plan.Run(s))
				plan.Destroy()
			} else {
				require.ErrorContains(t, err, want)
			}
			require.NoError(t, again.Destroy())
		}
	})
}

// If cuBLASLt refuses the epilogue, Plan uses a kernel without it.
func TestProductThatIsNotFused(t *testing.T) {
	onDevice(t, func(d *Device, s Stream) {
		_, err := CublasLt.Open(nil)
		need(t, err)
		blas, err := d.NewBLAS(BLASOptions{Workspace: 1 << 20})
		require.NoError(t, err)
		p := Product{M: 4, N: 4, K: 1, Epilogue: Bias, A: put(t, d, s, []float32{1, 2, 3, 4}), B: put(t, d, s, []float32{1, 1, 1, 1}), C: alloc(t, d, 64), Bias: put(t, d, s, make([]float32, 4))}
		plan, err := blas.Plan(s, p)
		require.NoError(t, err)
		t.Logf("with K = 1 the product is fused: %v", plan.Fused())
		require.NoError(t, plan.Run(s))
		require.Equal(t, []float32{1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4}, fetch(t, s, p.C, 16))
		plan.Destroy()
		require.NoError(t, blas.Destroy())
	})
}

// Matrices may begin at any element, which makes another kind of product. Operands of an
// epilogue may not.
func TestProductsAnywhere(t *testing.T) {
	onDevice(t, func(d *Device, s Stream) {
		_, err := CublasLt.Open(nil)
		need(t, err)
		blas, err := d.NewBLAS(BLASOptions{Workspace: 1 << 20})
		require.NoError(t, err)
		room := []float32{9, 1, 2, 3, 4, 9}
		for _, off := range []Ptr{4, 8} {
			p := Product{M: 2, N: 2, K: 2, Epilogue: Bias, A: put(t, d, s, room) + off, B: put(t, d, s, room) + off, C: put(t, d, s, room) + off, Bias: put(t, d, s, room) + off}
			plan, err := blas.Plan(s, p)
			require.NoError(t, err)
			require.False(t, plan.Fused())
			require.NoError(t, plan.Run(s))
			plan.Destroy()
			a := room[off/4:]
			require.Equal(t, []float32{a[0]*a[0] + a[1]*a[2], a[0]*a[1] + a[1]*a[3], a[2]*a[0] + a[3]*a[2], a[2]*a[1] + a[3]*a[3]}, fetch(t, s, p.C, 4))
			require.Contains(t, blas.Choices(), fmt.Sprintf("2x2x2 nn f32 none beta 0 at multiples of %d", off))
		}
		require.NoError(t, blas.Destroy())
	})
}

// With fewer bits in the factors, or in all matrices, a product is the same within rounding.
func TestProductsOfFewerBits(t *testing.T) {
	onDevice(t, func(d *Device, s Stream) {
		_, err := CublasLt.Open(nil)
		need(t, err)
		const m, n, k = 16, 24, 32
		a, b := make([]float32, m*k), make([]float32, k*n)
		for i := range a {
			a[i] = float32(i%7) - 3 // exact in bf16
		}
		for i := range b {
			b[i] = float32(i%5)/4 - .5
		}
		want, _ := reference(Product{M: m, N: n, K: k}, make([]float32, m*n), a, b)
		half := func(v []float32) Ptr {
			bits := make([]uint16, len(v))
			for i := range v {
				bits[i] = uint16(math.Float32bits(v[i]) >> 16)
			}
			p := alloc(t, d, 2*len(v))
			require.NoError(t, s.Write(p, BytesOf(bits)))
			return p
		}
		blas, err := d.NewBLAS(BLASOptions{TF32: true, Untimed: true, Workspace: 4 << 20})
		require.NoError(t, err)
		tf32 := Product{M: m, N: n, K: k, A: put(t, d, s, a), B: put(t, d, s, b), C: alloc(t, d, 4*m*n)}
		bf16 := Product{M: m, N: n, K: k, Type: BFloat16s, A: half(a), B: half(b), C: alloc(t, d, 2*m*n)}
		factors := bf16
		factors.Type, factors.Epilogue, factors.C, factors.Bias = BFloat16Factors, Bias, alloc(t, d, 4*m*n), put(t, d, s, make([]float32, n))
		for _, p := range []Product{tf32, bf16, factors} {
			plan, err := blas.Plan(s, p)
			require.NoError(t, err)
			require.NoError(t, plan.Run(s))
			require.NoError(t, s.Sync(t.Context()))
			plan.Destroy()
		}
		rounded := make([]uint16, m*n)
		require.NoError(t, s.Read(BytesOf(rounded), bf16.C))
		for i, got := range fetch(t, s, tf32.C, m*n) {
			require.InDelta(t, want[i], got, 1e-5, "TF32, whose factors are exact here")
			require.InDelta(t, want[i], math.Float32frombits(uint32(rounded[i])<<16), math.Abs(want[i])/128+1e-6, "bf16")
		}
		for i, got := range fetch(t, s, factors.C, m*n) {
			require.InDelta(t, want[i], got, 1e-5, "factors of bf16, which are exact here")
		}
		kinds := map[string]int{"16x24x32 nn tf32 none beta 0": 0, "16x24x32 nn bf16 none beta 0": 0, "16x24x32 nn bf16 to f32 bias beta 0": 0}
		require.Equal(t, kinds, blas.Choices(), "untimed takes the first")
		require.NoError(t, blas.Destroy())
	})
}

// BenchmarkLaunch measures the cost of a launch from Go: alone, in a Batch, and in a graph.
// The kernel does almost nothing.
func BenchmarkLaunch(b *testing.B) {
	for _, size := range []int{1, 16, 64} {
		onDevice(b, func(d *Device, s Stream) {
			c := kernel(b, kernels(b, d), "count")
			n := alloc(b, d, 8)
			var batch Batch
			for range size {
				batch.Add(c, Dim{}, Dim{X: 32}, 0, n.Arg(), Int32(1))
			}
			g, err := s.Capture(func() error { return batch.Launch(s) })
			require.NoError(b, err)
			measure := func(name string, launch func() error) { // not b.Run, which would run on another thread
				const times = 2000
				for _, counts := range []bool{false, true} {
					require.NoError(b, s.Sync(b.Context()))
					begin := time.Now()
					for range times {
						require.NoError(b, launch())
					}
					called := time.Since(begin)
					require.NoError(b, s.Sync(b.Context()))
					if done := time.Since(begin); counts {
						b.Logf("%d kernels, %s: %.2f us the call, %.2f us until done, %.3f us per kernel", size, name,
							called.Seconds()*1e6/times, done.Seconds()*1e6/times, done.Seconds()*1e6/times/float64(size))
					}
				}
			}
			measure("one by one", func() error {
				for range size {
					one := Batch{commands: batch.commands[:1], widths: batch.widths[:2], words: batch.words[:2], names: batch.names[:1]}
					if err := one.Launch(s); err != nil {
						return err
					}
				}
				return nil
			})
			measure("as a batch", func() error { return batch.Launch(s) })
			measure("as a graph", func() error { return g.Launch(s) })
			require.NoError(b, g.Destroy())
		})
	}
}

package gpu_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/gpu"
)

// Record's error names the call that a graph cannot repeat. The backend works again after
// Sync.
func TestRecordRefuses(t *testing.T) {
	within(t, gpu.Options{}, func(b *gpu.Backend) {
		v, ints := upload(b, 1, 2), b.AllocInts(1)
		for method, fn := range map[string]func(){
			"Copy ":    func() { b.Copy(v, []float32{3, 4}) },
			"CopyInts": func() { b.CopyInts(ints, []int32{1}) },
			"Read":     func() { b.Read(make([]float32, 2), v) },
			"Alloc":    func() { b.Alloc(3) },
			"two nn.Streams in one recording": func() {
				b.Dropout(v, v, 2, .5, 0, nn.Stream{Seed: 1})
				b.Dropout(v, v, 2, .5, 0, nn.Stream{Seed: 2})
			},
		} {
			_, err := b.Record("my step", func() error { fn(); return nil })
			require.ErrorContains(t, err, method)
			require.ErrorContains(t, err, `recording "my step"`)
			require.ErrorContains(t, b.Sync(t.Context()), method)
		}
		replay, err := b.Record("ok", func() error { b.Scale(v, 2); return nil })
		require.NoError(t, err)
		_, err = b.Record("outer", func() error {
			require.ErrorContains(t, b.Sync(context.Background()), "Sync inside Record")
			require.ErrorContains(t, replay(), `recording "ok" cannot be repeated inside Record "outer"`)
			_, err := b.Record("inner", func() error { return nil })
			return err
		})
		require.ErrorContains(t, err, `Record "inner" inside Record "outer"`)
		require.ErrorContains(t, b.Redraw("none", nn.Stream{}), `no recording "none"`)
		require.NoError(t, b.Sync(t.Context()))
	})
}

// A recording ends when its function panics.
func TestRecordPanic(t *testing.T) {
	b := open(t, gpu.Options{})
	v := nn.Buffer{}
	func() {
		defer func() { require.Contains(t, fmt.Sprint(recover()), "boo") }()
		_ = b.Do(t.Context(), func() error {
			v = upload(b, 5)
			_, _ = b.Record("bad", func() error { b.Scale(v, 2); panic("boo") })
			return nil
		})
	}()
	require.NoError(t, b.Do(t.Context(), func() error {
		b.Copy(v, []float32{6}) // a recording would refuse this
		require.Equal(t, []float32{6}, read(b, v))
		return nil
	}))
	require.NoError(t, b.Close())
}

func TestRecordAgain(t *testing.T) {
	within(t, gpu.Options{}, func(b *gpu.Backend) {
		v := upload(b, 1)
		double, err := b.Record("k", func() error { b.Scale(v, 2); return nil })
		require.NoError(t, err)
		triple, err := b.Record("k", func() error { b.Scale(v, 3); return nil })
		require.NoError(t, err)
		require.ErrorContains(t, double(), `recording "k": its key was recorded again`)
		require.NoError(t, triple())
		require.Equal(t, []float32{18}, read(b, v))
		nothing, err := b.Record("nothing", func() error { return nil })
		require.NoError(t, err)
		require.NoError(t, nothing())
	})
}

// A repetition does not touch memory that Temp returned outside recordings, even after a
// Recycle.
func TestRecordTemps(t *testing.T) {
	within(t, gpu.Options{}, func(b *gpu.Backend) {
		x, y := upload(b, 1, 2, 3), b.Alloc(3)
		replay, err := b.Record("temps", func() error {
			inside := b.Temp(3)
			b.Zero(inside)
			b.Axpy(inside, 10, x)
			b.Axpy(y, 1, inside)
			return nil
		})
		require.NoError(t, err)
		b.Recycle()
		after := b.Temp(3)
		b.Copy(after, []float32{4, 5, 6})
		require.NoError(t, replay())
		require.Equal(t, []float32{20, 40, 60}, read(b, y))
		require.Equal(t, []float32{4, 5, 6}, read(b, after))
	})
}

// Work of Queue runs in order with the backend's, and repetitions include it.
func TestQueue(t *testing.T) {
	for name, o := range map[string]gpu.Options{"graph": {}, "plain": {Plain: true}} {
		t.Run(name, func(t *testing.T) {
			within(t, o, func(b *gpu.Backend) {
				x, y := upload(b, 1, 2), upload(b, 0, 0)
				_, from, _ := x.Device()
				_, to, _ := y.Device()
				replay, err := b.Record("copy", func() error {
					b.Scale(x, 2)
					b.Queue("a copy", func(s cuda.Stream) error { return s.Copy(cuda.Ptr(to), cuda.Ptr(from), 8) })
					b.Scale(x, 10)
					return nil
				})
				require.NoError(t, err)
				require.Equal(t, []float32{2, 4}, read(b, y))
				require.NoError(t, replay())
				require.Equal(t, []float32{40, 80}, read(b, y))
				b.Queue("a mistake", func(s cuda.Stream) error { return context.DeadlineExceeded })
				require.ErrorContains(t, b.Sync(t.Context()), "a mistake: context deadline")
			})
		})
	}
}

// Record returns an error for work that cannot be captured, and the stream still works.
func TestRecordNoCapture(t *testing.T) {
	within(t, gpu.Options{}, func(b *gpu.Backend) {
		v := upload(b, 1)
		_, err := b.Record("waits", func() error {
			b.Scale(v, 2)
			b.Queue("a wait", func(s cuda.Stream) error { return s.Sync(context.Background()) })
			return nil
		})
		require.ErrorContains(t, err, `recording "waits": a wait: `)
		require.ErrorContains(t, err, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")
		require.Equal(t, []float32{2}, read(b, v))
	})
}

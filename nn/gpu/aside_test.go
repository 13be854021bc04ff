package gpu_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/gpu"
)

// copyOf returns a function for Queue and Aside that copies one Buffer to another.
func copyOf(to, from nn.Buffer) func(cuda.Stream) error {
	_, src, _ := from.Device()
	_, dst, _ := to.Device()
	return func(s cuda.Stream) error { return s.Copy(cuda.Ptr(dst), cuda.Ptr(src), 4*from.Len()) }
}

// Work of Aside runs after work queued before it and before work queued after Join, both
// launch by launch and as a branch of a graph. The emulator alternates between running
// it early and late.
func TestAside(t *testing.T) {
	for name, o := range map[string]gpu.Options{"graph": {}, "plain": {Plain: true}} {
		t.Run(name, func(t *testing.T) {
			within(t, o, func(b *gpu.Backend) {
				x, y, z, w := upload(b, 1), upload(b, 0), upload(b, 1), upload(b, 0)
				step := func(join func()) func() error {
					return func() error {
						for range 3 {
							b.Scale(x, 2)
							b.Aside("a copy", copyOf(y, x))
							b.Scale(z, .5) // concurrent with the copy
							b.Aside("another", copyOf(w, z))
							b.Join()
							b.Axpy(z, .25, w)
							b.Scale(x, 1.5)
							b.Axpy(z, 1, y)
						}
						b.Aside("a copy", copyOf(y, x))
						join()
						return nil
					}
				}
				want := [4]float32{1, 0, 1, 0}
				next := func() {
					for range 3 {
						want[1] = want[0] * 2
						want[3] = want[2] / 2
						want[0], want[2] = want[1]*1.5, want[3]*1.25+want[1]
					}
					want[1] = want[0]
				}
				all := func() []float32 { return []float32{read(b, x)[0], read(b, y)[0], read(b, z)[0], read(b, w)[0]} }
				for key, join := range map[string]func(){"joins": b.Join, "ends": func() {}} {
					next()
					replay, err := b.Record(key, step(join)) // the end of a recording joins, too
					require.NoError(t, err)
					for range 4 {
						next()
						require.NoError(t, replay())
					}
					require.NoError(t, b.Sync(t.Context()))
					require.Equal(t, want[:], all())
				}
				for range 8 { // without Record
					next()
					require.NoError(t, step(b.Join)())
					require.Equal(t, want[:], all())
				}
			})
		})
	}
}

// A failure of Aside's function is the backend's. If Record cannot capture it, both
// streams still work.
func TestAsideFails(t *testing.T) {
	within(t, gpu.Options{}, func(b *gpu.Backend) {
		x, y := upload(b, 1), upload(b, 0)
		b.Aside("a mistake", func(cuda.Stream) error { return context.DeadlineExceeded })
		b.Join()
		require.ErrorContains(t, b.Sync(t.Context()), "a mistake: context deadline")
		_, err := b.Record("waits", func() error {
			b.Scale(x, 2)
			b.Aside("a wait", func(s cuda.Stream) error { return s.Sync(context.Background()) })
			return nil
		})
		require.ErrorContains(t, err, `recording "waits": a wait: `)
		require.ErrorContains(t, err, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")
		b.Aside("a copy", copyOf(y, x))
		b.Join()
		require.Equal(t, []float32{2}, read(b, y))
	})
}

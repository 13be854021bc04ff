package gpu_test

import (
	"context"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/gpu"
)

// Copies exceed the pinned memory several times, and the source changes as soon as each
// returns.
func TestLargeCopies(t *testing.T) {
	within(t, gpu.Options{}, func(b *gpu.Backend) {
		const n, copies = 300_001, 7
		src := make([]float32, n)
		var all []nn.Buffer
		for k := range copies {
			for i := range src {
				src[i] = float32(k*n + i)
			}
			v := b.Alloc(n)
			b.Copy(v, src)
			all = append(all, v)
		}
		for k, v := range all {
			got := read(b, v)
			for i := range got {
				if got[i] != float32(k*n+i) {
					require.Failf(t, "not what was copied", "copy %d, element %d is %v", k, i, got[i])
				}
			}
		}
	})
}

func TestBuffersBeginAtCacheLines(t *testing.T) {
	within(t, gpu.Options{}, func(b *gpu.Backend) {
		for n := 1; n < 40; n++ {
			for _, v := range []nn.Buffer{b.Alloc(n), b.AllocInts(n), b.Temp(n)} {
				device, at, ok := v.Device()
				require.True(t, ok)
				require.Zero(t, device)
				require.Zero(t, at%64)
			}
		}
	})
}

// used returns the bytes of device memory that fn allocates.
func used(t *testing.T, b *gpu.Backend, fn func()) int {
	t.Helper()
	before, _, err := b.Device().MemInfo()
	require.NoError(t, err)
	fn()
	after, _, err := b.Device().MemInfo()
	require.NoError(t, err)
	return int(before) - int(after)
}

// Two large pieces do not fit into a range, so each takes only its own size.
func TestLargeTempsTakeTheirSize(t *testing.T) {
	within(t, gpu.Options{}, func(b *gpu.Backend) {
		require.Less(t, used(t, b, func() {
			for range 4 {
				b.Temp(10 << 20)
			}
		}), 4*48<<20)
	})
}

// Temporary memory has the same addresses in each step, so that products are planned once
// and graphs stay valid.
func TestTempsRepeat(t *testing.T) {
	within(t, gpu.Options{}, func(b *gpu.Backend) {
		var first []nn.Buffer
		for step := range 3 {
			b.Recycle()
			var now []nn.Buffer
			for i := range 12 {
				now = append(now, b.Temp(i*100_000))
			}
			if step == 1 { // step 0 has allocated the ranges
				first = now
			}
			if step > 1 {
				require.Equal(t, first, now)
			}
		}
	})
}

// If memory runs out, nothing more is computed until Sync has returned the error. Then the
// backend works again.
func TestNoMemory(t *testing.T) {
	within(t, gpu.Options{}, func(b *gpu.Backend) {
		v := upload(b, 1)
		huge := b.Alloc(1 << 50)
		require.Equal(t, 1<<50, huge.Len())
		b.Scale(v, 2)
		require.True(t, math.IsNaN(float64(read(b, v)[0])), "a failed Read gives NaNs")
		err := b.Sync(t.Context())
		require.ErrorIs(t, err, cuda.ErrOutOfMemory)
		require.ErrorContains(t, err, "no memory for 1125899906842624 float32")
		require.NoError(t, b.Sync(t.Context()), "Sync returns a failure only once")
		require.Equal(t, []float32{1}, read(b, v))
		b.Scale(huge, 2)
		require.ErrorContains(t, b.Sync(t.Context()), "the allocation of this Buffer of 1125899906842624 elements failed")
	})
}

// Sync returns CUDA's error for a kernel that accesses memory out of bounds. That spoils the
// context of the whole process, so the test runs in a child process.
func TestIllegalAddress(t *testing.T) {
	const spoilt = "RINGTRAIN_TEST_ILLEGAL_ADDRESS"
	b := open(t, gpu.Options{})
	if os.Getenv(spoilt) == "" {
		require.NoError(t, b.Close())
		out, err := again(t, "TestIllegalAddress", spoilt+"=1")
		require.NoError(t, err, out)
		require.Contains(t, out, "--- PASS: TestIllegalAddress")
		return
	}
	require.NoError(t, b.Do(t.Context(), func() error {
		labels := b.AllocInts(1)
		b.CopyInts(labels, []int32{math.MaxInt32})
		b.CrossEntropy(nn.Buffer{}, b.Alloc(1), upload(b, .5, .5), labels)
		return nil
	}))
	require.ErrorIs(t, b.Sync(t.Context()), cuda.ErrIllegalAddress)
	require.ErrorIs(t, b.Close(), cuda.ErrIllegalAddress)
}

func TestMistakes(t *testing.T) {
	within(t, gpu.Options{}, func(b *gpu.Backend) {
		v := upload(b, 1, 2)
		for text, fn := range map[string]func(){
			"gpu: the Buffer is not in the memory of device 0":      func() { b.Scale(nn.Host([]float32{1}), 2) },
			"gpu: Axpy: the lengths of the Buffers do not match":    func() { b.Axpy(v, 1, v.Slice(0, 1)) },
			"gpu: Gemm: the lengths of the Buffers do not match":    func() { b.Gemm(v, v, v, 2, 2, 1, false, false, 0) },
			"gpu: Copy: the lengths of the Buffers do not match":    func() { b.Copy(v, []float32{1}) },
			"gpu: AddBias: the lengths of the Buffers do not match": func() { b.AddBias(v, upload(b, 1, 2, 3)) },
		} {
			func() {
				defer func() { require.Contains(t, recover(), text) }()
				fn()
			}()
		}
		require.Equal(t, []float32{1, 2}, read(b, v))
	})
}

// After Abort a rank votes against its steps, which change nothing. After Resume they do again.
// Abort between Vote and Commit is soon enough.
func TestAbort(t *testing.T) {
	within(t, gpu.Options{}, func(b *gpu.Backend) {
		w, g, votes, loss := upload(b, 1, 2), upload(b, 1, 1), b.Alloc(nn.VoteLen), b.Alloc(1)
		pace := b.NewPace(nn.PaceConfig{Hyper: func(int) (h [nn.HyperLen]float32) {
			h[nn.HyperRate] = .5
			return h
		}}).(nn.Committer)
		commit := func() {
			pace.Commit(votes, 1)
			b.SGD(w, g, nn.Buffer{}, nn.Buffer{}, pace.Hyper())
			pace.Tick(loss, 0)
		}
		step, err := b.Record("step", func() error {
			pace.Vote(votes)
			commit()
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, []float32{.5, 1.5}, read(b, w))
		b.Abort()
		require.NoError(t, step())
		require.Equal(t, []float32{.5, 1.5}, read(b, w))
		first, ok := pace.Withheld(pace.Step())
		require.Equal(t, []any{1, true}, []any{first, ok})
		b.Resume()
		_, ok = pace.Withheld(pace.Step())
		require.False(t, ok)
		require.NoError(t, step())
		require.Equal(t, []float32{0, 1}, read(b, w))
		pace.Vote(votes)
		require.NoError(t, b.Sync(t.Context()))
		b.Abort()
		commit()
		require.Equal(t, []float32{0, 1}, read(b, w))
	})
}

func TestClose(t *testing.T) {
	b := open(t, gpu.Options{})
	require.NotEmpty(t, b.Info().Name)
	replay := func() error { return nil }
	require.NoError(t, b.Do(t.Context(), func() error {
		v := upload(b, 1)
		var err error
		replay, err = b.Record("r", func() error { b.Scale(v, 2); return nil })
		return err
	}))
	require.NoError(t, b.Close())
	require.NoError(t, b.Close(), "again")
	b.Abort()
	require.ErrorIs(t, b.Do(t.Context(), func() error { return nil }), gpu.ErrClosed)
	require.ErrorIs(t, b.Sync(context.Background()), gpu.ErrClosed)
	require.ErrorIs(t, replay(), gpu.ErrClosed)
}

// Timing a product does not disturb the C that it adds to, and the next run can use its
// choice.
func TestTimedProducts(t *testing.T) {
	var choices map[string]int
	product := func(b *gpu.Backend) {
		c := upload(b, 1, 2, 3, 4)
		for range 2 {
			b.Gemm(c, upload(b, 1, 0, 0, 1), upload(b, 1, 2, 3, 4), 2, 2, 2, false, false, 1)
		}
		require.Equal(t, []float32{3, 6, 9, 12}, read(b, c))
	}
	within(t, gpu.Options{Timed: true}, func(b *gpu.Backend) {
		product(b)
		choices = b.Choices()
	})
	require.Len(t, choices, 1)
	within(t, gpu.Options{Choices: choices}, func(b *gpu.Backend) {
		product(b)
		require.Equal(t, choices, b.Choices())
	})
}

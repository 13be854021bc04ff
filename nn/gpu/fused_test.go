package gpu_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/gpu"
	"github.com/ringtrain/ringtrain/nn/nntest"
)

// Products are also correct if the backend times both forms.
func TestFuserTimed(t *testing.T) {
	open(t, gpu.Options{})
	nntest.TestFuser(t, func(t *testing.T) nn.Backend { return open(t, gpu.Options{Timed: true}) })
}

// Products are also correct if cuBLASLt has no epilogues.
func TestFuserWithoutEpilogues(t *testing.T) {
	open(t, gpu.Options{})
	t.Setenv("RINGTRAIN_EMULATOR_LT_PLAIN", "1")
	nntest.TestFuser(t, func(t *testing.T) nn.Backend { return open(t, gpu.Options{}) })
}

// sheer hides a backend's optional methods.
type sheer struct{ nn.Backend }

// gradients calls learn on a new backend that wrap may change, and returns its gradients and
// the backend's choices.
func gradients(t *testing.T, o gpu.Options, dropout float32, wrap func(*gpu.Backend) nn.Backend) (grads []float32, choices map[string]int) {
	within(t, o, func(b *gpu.Backend) {
		grads = learn(t, wrap(b), dropout)
		choices = b.Choices()
	})
	return grads, choices
}

func fusing(b *gpu.Backend) nn.Backend   { return b }
func stepwise(b *gpu.Backend) nn.Backend { return sheer{b} }

// learn records a step of a perceptron and repeats it once. It returns the gradients, summed
// over both.
func learn(t *testing.T, b nn.Backend, dropout float32) []float32 {
	const rows, width, hidden = 20, 30, 48
	layer := nn.Chain(
		&nn.Relu{Out: hidden, Dropout: dropout}, nn.Chain(&nn.Relu{Out: hidden}, &nn.Relu{Out: hidden, Dropout: dropout}), &nn.Linear{Out: hidden},
		&nn.Relu{Out: hidden}, &nn.Softmax{InitW: nn.GlorotUniform},
	)
	m, err := nn.NewClassifier(b, layer, []int{width}, classes, 3)
	require.NoError(t, err)
	x, labels := b.Alloc(rows*width), b.AllocInts(rows)
	values, classOf := make([]float32, rows*width), make([]int32, rows)
	for i := range values {
		values[i] = float32(i*7919%1000)/500 - 1
	}
	for i := range classOf {
		classOf[i] = int32(i % classes)
	}
	b.Copy(x, values)
	b.CopyInts(labels, classOf)
	replay, err := b.Record("learn", func() error {
		_, _, err := m.Learn(&nn.Pass{Backend: b, Train: true, Random: nn.Stream{Seed: 4}}, nn.Batch{X: nn.Tensor{Shape: []int{rows, width}, Data: x}, Labels: labels})
		return err
	})
	require.NoError(t, err)
	require.NoError(t, replay())
	return read(b, m.Params().Grads)
}

// Gradients match the host's within rounding, however the layers are computed.
func TestFusedGradients(t *testing.T) {
	for _, dropout := range []float32{0, .2} {
		host := cpu.New(cpu.Options{})
		want := learn(t, host, dropout)
		require.NoError(t, host.Close())
		steps, none := gradients(t, gpu.Options{}, dropout, stepwise)
		near(t, want, steps, 1e-5)
		for key := range none {
			require.NotContains(t, key, "as one")
		}
		one, choices := gradients(t, gpu.Options{}, dropout, fusing)
		near(t, want, one, 1e-5)
		again, _ := gradients(t, gpu.Options{Choices: choices}, dropout, fusing)
		require.Equal(t, one, again, "the same choices have the same bits")

		timed, tried := gradients(t, gpu.Options{Timed: true}, dropout, fusing)
		near(t, want, timed, 1e-5)
		replayed, kept := gradients(t, gpu.Options{Choices: tried, Timed: true}, dropout, fusing)
		require.Equal(t, timed, replayed)
		for key, choice := range kept { // kept lacks products that were timed and not used
			require.Equal(t, tried[key], choice, key)
		}
		kinds := map[string]bool{}
		for key := range choices {
			if method, _, ok := strings.Cut(key, " as one "); ok {
				kinds[method] = true
			}
		}
		require.Equal(t, map[string]bool{"Affine": true, "AffineGrad": true, "ReluInputGrad": true}, kinds)
	}
}

// Epilogues reduce the number of kernels of a step.
func TestFusedLaunches(t *testing.T) {
	standIn := false
	count := func(wrap func(*gpu.Backend) nn.Backend) (n int) {
		within(t, gpu.Options{}, func(b *gpu.Backend) {
			standIn = emulated(b)
			w := wrap(b)
			x, labels := b.Alloc(8*32), b.AllocInts(8)
			m, err := nn.NewClassifier(w, nn.Chain(&nn.Relu{Out: 64}, &nn.Relu{Out: 64}, &nn.Softmax{}), []int{32}, classes, 3)
			require.NoError(t, err)
			_, err = b.Record("learn", func() error {
				_, _, err := m.Learn(&nn.Pass{Backend: w, Train: true, Zeroed: true}, nn.Batch{X: nn.Tensor{Shape: []int{8, 32}, Data: x}, Labels: labels})
				return err
			})
			require.NoError(t, err)
			n, err = b.Nodes("learn")
			require.NoError(t, err)
			for key := range b.Choices() {
				require.NotContains(t, key, "row-sums beta 1", "gradients that are zero must be overwritten, not added to")
			}
		})
		return n
	}
	// Fusing saves 10 kernels for three biases, two Relus, two ReluGrads and three SumRows,
	// and 3 because the softmax, the loss, its Zero and its gradient are one. On a GPU the
	// number of kernels per product is cuBLASLt's choice.
	steps, one := count(stepwise), count(fusing)
	t.Logf("kernels of a step: %d in steps, %d as one", steps, one)
	if standIn {
		require.Equal(t, 13, steps-one)
	}
}

// Chosen gets all choices, each before its product runs, and its error is the backend's.
func TestChosen(t *testing.T) {
	var reported []map[string]int
	o := gpu.Options{Timed: true, Chosen: func(choices map[string]int) error {
		reported = append(reported, choices)
		return nil
	}}
	first, choices := gradients(t, o, 0, fusing)
	require.Equal(t, choices, reported[len(reported)-1])
	for i := range reported[1:] {
		require.Greater(t, len(reported[i+1]), len(reported[i]))
	}
	o.Choices = choices
	again, _ := gradients(t, o, 0, fusing)
	require.Equal(t, first, again)

	b := open(t, gpu.Options{Chosen: func(map[string]int) error { return os.ErrClosed }})
	require.NoError(t, b.Do(t.Context(), func() error {
		b.Gemm(b.Alloc(4), b.Alloc(4), b.Alloc(4), 2, 2, 2, false, false, 0)
		return nil
	}))
	require.ErrorIs(t, b.Sync(t.Context()), os.ErrClosed)
}

// Choices of another cuBLASLt are an error and do not silently change bits.
func TestChoicesOfAnother(t *testing.T) {
	open(t, gpu.Options{})
	t.Setenv("RINGTRAIN_EMULATOR_LT_PLAIN", "1")
	b := open(t, gpu.Options{Choices: map[string]int{"Affine as one 2x2x2 nt f32 bias beta 0": 1}})
	if cuda.Available() == nil && !emulated(b) {
		t.Skip("cuBLASLt on a GPU has kernels with epilogues")
	}
	require.NoError(t, b.Do(t.Context(), func() error {
		b.Affine(b.Alloc(4), b.Alloc(4), b.Alloc(4), b.Alloc(2), false, false)
		return nil
	}))
	require.ErrorContains(t, b.Sync(context.Background()), "the choices are from another device or another cuBLASLt")
}

package gpu_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/gpu"
	"github.com/ringtrain/ringtrain/nn/nntest"
)

// all makes cuDNN compute convolutions of any size.
const all = 1

// needCuDNN skips a test on a machine without cuDNN.
func needCuDNN(t *testing.T) {
	t.Helper()
	open(t, gpu.Options{}) // may skip the test
	if _, err := cuda.DNNVersion(); err != nil {
		t.Skip(err)
	}
}

// refuse makes the emulator's cuDNN refuse an operation. With a real cuDNN it skips the
// test.
func refuse(t *testing.T, what string) {
	t.Helper()
	needCuDNN(t)
	b := open(t, gpu.Options{})
	if !emulated(b) {
		t.Skip("needs the emulator's cuDNN")
	}
	t.Setenv("RINGTRAIN_EMULATOR_CUDNN_REFUSES", what)
}

// cuDNN computes all convolutions correctly, even if products are bfloat16. TestBackend
// checks our kernels.
func TestConv(t *testing.T) {
	needCuDNN(t)
	for name, o := range map[string]gpu.Options{"float32": {LeastForCuDNN: all}, "bf16": {LeastForCuDNN: all, BF16: true}} {
		t.Run(name, func(t *testing.T) {
			nntest.TestConv(t, func(t *testing.T) nn.Backend { return open(t, o) })
		})
	}
}

// images is a network with two convolutions, so that one needs the gradient of its input.
var images = training{func() nn.Layer {
	return nn.Chain(
		&nn.Images{}, &nn.Conv2D{Out: 3, Size: 3, Stride: 2, Padding: 1}, &nn.Rectify{}, &nn.MaxPool2D{Size: 2},
		&nn.Conv2D{Out: 2, Size: 3, Padding: 1}, &nn.Rectify{}, &nn.Softmax{InitW: nn.FanInUniform},
	)
}, 2, 2}

// first is the kind of the first convolution.
const first = "conv2d forward 2x1x28x28 by 3x3x3 stride 2 padding 1 f32"

// onHost trains the network images on the host.
func onHost(t *testing.T) outcome {
	host := cpu.New(cpu.Options{})
	made := direct(t, host, images)
	require.NoError(t, host.Close())
	return made
}

// same requires that got is near want, the outcome on the host.
func same(t *testing.T, want, got outcome) {
	t.Helper()
	near(t, want.losses, got.losses, 1e-5)
	near(t, want.weights, got.weights, 1e-3)
	near(t, want.average, got.average, 1e-3)
}

// waysOf returns the choices for convolutions.
func waysOf(choices map[string]int) map[string]int {
	ways := map[string]int{}
	for key, way := range choices {
		if strings.HasPrefix(key, "conv2d ") {
			ways[key] = way
		}
	}
	return ways
}

// trained trains the network images with train, and returns the outcome and the ways that
// were chosen.
func trained(t *testing.T, o gpu.Options, train func(*testing.T, *gpu.Backend, training) outcome) (made outcome, ways map[string]int) {
	within(t, o, func(b *gpu.Backend) {
		made = train(t, b, images)
		ways = waysOf(b.Choices())
	})
	return made, ways
}

func eager(t *testing.T, b *gpu.Backend, k training) outcome { return direct(t, b, k) }

// Training with cuDNN matches the host, launch by launch and as graphs. The size of a
// convolution decides whether cuDNN computes it.
func TestConvTraining(t *testing.T) {
	needCuDNN(t)
	graph, ways := trained(t, gpu.Options{LeastForCuDNN: all}, recorded)
	same(t, onHost(t), graph)
	kinds := []string{
		first, "conv2d forward 2x3x7x7 by 2x3x3 stride 1 padding 1 f32",
		"conv2d input 2x3x7x7 by 2x3x3 stride 1 padding 1 f32",
		"conv2d weights 2x1x28x28 by 3x3x3 stride 2 padding 1 f32", "conv2d weights 2x3x7x7 by 2x3x3 stride 1 padding 1 f32",
	}
	require.Equal(t, kinds, slices.Sorted(maps.Keys(ways)))
	for kind, way := range ways {
		t.Logf("%s: algorithm %d", kind, way)
		if emulated(open(t, gpu.Options{})) { // NVIDIA's cuDNN may have no deterministic algorithm
			require.NotEqual(t, -1, way, kind)
		}
	}
	one, _ := trained(t, gpu.Options{LeastForCuDNN: all}, eager)
	require.Equal(t, one, graph, "a graph must have the same bits")
	plain, _ := trained(t, gpu.Options{LeastForCuDNN: all, Plain: true}, recorded)
	require.Equal(t, one, plain)

	small, none := trained(t, gpu.Options{}, recorded)
	require.Empty(t, none, "they are too small")
	never, _ := trained(t, gpu.Options{LeastForCuDNN: -1}, recorded)
	require.Equal(t, small, never)
	if slices.Max(slices.Collect(maps.Values(ways))) >= 0 {
		require.NotEqual(t, small, graph, "sums are in another order")
	}
	const ofFirst, ofSecond = 2 * 3 * 14 * 14 * 9, 2 * 2 * 7 * 7 * 27 // multiply-adds
	_, large := trained(t, gpu.Options{LeastForCuDNN: max(ofFirst, ofSecond)}, recorded)
	require.Equal(t, []string{kinds[0], kinds[3]}, slices.Sorted(maps.Keys(large)))
}

// A later run with the choices of a timed run gives the same bits, timed or not.
func TestConvChoices(t *testing.T) {
	needCuDNN(t)
	var chosen map[string]int
	made, tried := trained(t, gpu.Options{Timed: true, Chosen: func(c map[string]int) error { chosen = c; return nil }}, recorded)
	same(t, onHost(t), made)
	require.Len(t, tried, 5)
	require.Equal(t, tried, waysOf(chosen))
	for _, o := range []gpu.Options{{Choices: chosen, LeastForCuDNN: all}, {Choices: chosen, Timed: true}} {
		again, ways := trained(t, o, recorded)
		require.Equal(t, made, again)
		require.Equal(t, tried, ways)
	}
	// Choices decide, not the size of a convolution.
	forced := map[string]int{}
	for key := range tried {
		forced[key] = -1
	}
	ours, _ := trained(t, gpu.Options{Choices: forced, LeastForCuDNN: all}, eager)
	own, _ := trained(t, gpu.Options{LeastForCuDNN: -1}, eager)
	require.Equal(t, own, ours)
	forced[first] = 0
	_, ways := trained(t, gpu.Options{Choices: forced}, eager)
	require.Equal(t, 0, ways[first])

	require.ErrorContains(t, refusal(t, 99), "cuDNN does not offer it")
	require.ErrorContains(t, refusal(t, 4), "cuDNN does not offer it", "an algorithm that transforms")
}

// refusal returns the error of a backend whose Choices name a way that it does not have.
func refusal(t *testing.T, way int) error {
	t.Helper()
	b := open(t, gpu.Options{Choices: map[string]int{first: way}})
	require.NoError(t, b.Do(t.Context(), func() error {
		y, x, w, bias := b.Alloc(2*3*14*14), b.Alloc(2*28*28), b.Alloc(3*9), b.Alloc(3)
		b.Conv2D(y, x, w, bias, nn.Window{Channels: 1, Height: 28, Width: 28, Size: 3, Stride: 2, Padding: 1})
		return nil
	}))
	err := b.Sync(t.Context())
	require.ErrorContains(t, err, "the choices are from another device or another cuDNN")
	require.NoError(t, b.Close())
	return err
}

// A choice of cuDNN is refused where cuDNN does not start. On a GPU this is skipped, and
// TestConvChoices, without which a visit is not ok, is not.
func TestConvChoicesWithoutCuDNN(t *testing.T) {
	refuse(t, "create")
	require.ErrorContains(t, refusal(t, 0), "cuDNN is not available")
}

// Our kernels compute what cuDNN refuses, and Choices record that.
func TestConvRefused(t *testing.T) {
	needCuDNN(t)
	own, _ := trained(t, gpu.Options{LeastForCuDNN: -1}, recorded)
	for _, what := range []string{"heuristic", "run"} {
		refuse(t, what)
		got, ways := trained(t, gpu.Options{LeastForCuDNN: all}, recorded)
		require.Len(t, ways, 5)
		for kind, way := range ways {
			require.Equal(t, -1, way, kind)
		}
		require.Equal(t, own, got)
	}
	refuse(t, "capture") // of the first algorithm; gradients have no other
	got, ways := trained(t, gpu.Options{LeastForCuDNN: all}, recorded)
	same(t, onHost(t), got)
	for kind, way := range ways {
		require.Equal(t, strings.Contains(kind, "forward"), way == 0, "%s by %d", kind, way)
	}
}

// TestConvAnyway trains with whatever cuDNN this process finds. Notice gets one line if cuDNN
// does not work, and none if it is not installed.
func TestConvAnyway(t *testing.T) {
	var lines []string
	o := gpu.Options{LeastForCuDNN: all, Notice: func(line string) {
		if strings.Contains(line, "convolutions") {
			t.Log(line)
			lines = append(lines, line)
		}
	}}
	got, ways := trained(t, o, recorded)
	same(t, onHost(t), got)
	_, err := cuda.DNNVersion()
	t.Logf("cuDNN: %v", err)
	if err != nil {
		require.Empty(t, ways)
	}
	if err != nil && !errors.Is(err, cuda.ErrNotInstalled) {
		require.Len(t, lines, 1)
		require.NotContains(t, lines[0], "\n")
	} else if len(ways) > 0 || err != nil {
		require.Empty(t, lines)
	}
}

// Our kernels compute convolutions whose operands are not aligned as cuDNN requires.
func TestConvUnaligned(t *testing.T) {
	needCuDNN(t)
	within(t, gpu.Options{LeastForCuDNN: all}, func(b *gpu.Backend) {
		s := nn.Window{Channels: 1, Height: 5, Width: 5, Size: 3, Stride: 1}
		x, w, bias, y := b.Alloc(26), b.Alloc(9), b.Alloc(1), b.Alloc(9)
		b.Conv2D(y, x.Slice(1, 26), w, bias, s)
		require.NoError(t, b.Sync(t.Context()))
		require.Empty(t, waysOf(b.Choices()))
		b.Conv2D(y, x.Slice(0, 25), w, bias, s)
		require.Len(t, waysOf(b.Choices()), 1)
		b.Conv2D(y, x.Slice(1, 26), w, bias, s)
	})
}

// BenchmarkConv times each pass with our kernels and with cuDNN, for sizes around
// LeastForCuDNN. That constant is an estimate until this benchmark has run on a GPU.
func BenchmarkConv(b *testing.B) {
	for _, c := range []struct {
		rows, filters int
		nn.Window
	}{
		{32, 8, nn.Window{Channels: 1, Height: 28, Width: 28, Size: 3, Stride: 1, Padding: 1}},
		{32, 16, nn.Window{Channels: 8, Height: 28, Width: 28, Size: 3, Stride: 1, Padding: 1}},
		{64, 32, nn.Window{Channels: 16, Height: 28, Width: 28, Size: 3, Stride: 1, Padding: 1}},
		{64, 64, nn.Window{Channels: 64, Height: 56, Width: 56, Size: 3, Stride: 1, Padding: 1}},
	} {
		products := c.rows * c.filters * c.Plane() * c.Channels * c.Size * c.Size
		for _, by := range []struct {
			name  string
			least int
		}{{"ours", -1}, {"cuDNN", all}} {
			if _, err := cuda.DNNVersion(); by.least == all && err != nil {
				b.Skip(err)
			}
			g := open(b, gpu.Options{LeastForCuDNN: by.least})
			if emulated(g) {
				b.Skip("the emulator's times mean nothing")
			}
			passes := map[string]func() error{}
			require.NoError(b, g.Do(b.Context(), func() (err error) {
				x, y := g.Alloc(c.rows*c.In()), g.Alloc(c.rows*c.filters*c.Plane())
				w, bias := g.Alloc(c.filters*c.Channels*c.Size*c.Size), g.Alloc(c.filters)
				for name, pass := range map[string]func(){
					"forward": func() { g.Conv2D(y, x, w, bias, c.Window) },
					"weights": func() { g.Conv2DGrad(w, bias, y, x, c.Window) },
					"input":   func() { g.Conv2DInputGrad(x, y, w, c.Window) },
				} {
					passes[name], err = g.Record(name, func() error { pass(); return nil })
					require.NoError(b, err)
				}
				return nil
			}))
			for name, again := range passes {
				b.Run(fmt.Sprintf("%s/%d/%s", name, products, by.name), func(b *testing.B) {
					require.NoError(b, g.Do(b.Context(), func() error {
						for b.Loop() {
							require.NoError(b, again())
							require.NoError(b, g.Sync(b.Context()))
						}
						return nil
					}))
				})
			}
			require.NoError(b, g.Close())
		}
	}
}

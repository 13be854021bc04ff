package gpu_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/gpu"
	"github.com/ringtrain/ringtrain/nn/optim"
)

const wholeSteps = 20

// Few rows are enough here, because other tests check what a step computes.
var (
	wholePerceptron = training{perceptron.layer, 4, wholeSteps}
	wholeConvnet    = training{convnet.layer, 2, wholeSteps}
)

// A whole is a network with everything that a step needs in its backend's memory: the
// data set, the order of its rows, and the Pace.
type whole struct {
	nn.Pacer
	t         *testing.T
	m         *nn.Classifier
	optimizer optim.Recordable
	state     *optim.State
	pace      nn.Pace
	batch     int

	data, classes, order, x, labels nn.Buffer
}

func newWhole(t *testing.T, b nn.Pacer, k training, o optim.Recordable) *whole {
	m, err := nn.NewClassifier(b, k.layer(), []int{pixels}, classes, 7)
	require.NoError(t, err)
	w := &whole{
		Pacer: b, t: t, m: m, optimizer: o, state: optim.NewState(b, m.Params(), o), batch: k.batch,
		pace: b.NewPace(nn.PaceConfig{
			Random: nn.Stream{Seed: 9, First: 3, Stride: 2},
			Hyper:  func(step int) [nn.HyperLen]float32 { h, _ := o.Hyper(step); return h },
		}),
		x: b.Alloc(k.batch * pixels), labels: b.AllocInts(k.batch),
	}
	const rows = 50
	random := rand.New(rand.NewPCG(1, 5))
	images, labels, order := make([]int32, rows*pixels/4), make([]int32, rows), make([]int32, wholeSteps*k.batch)
	for i := range images {
		images[i] = int32(binary.NativeEndian.Uint32([]byte{byte(random.Uint32()), byte(random.Uint32()), byte(random.Uint32()), byte(random.Uint32())}))
	}
	for i := range labels {
		labels[i] = random.Int32N(classes)
	}
	for i := range order {
		order[i] = random.Int32N(rows)
	}
	upload := func(v []int32) nn.Buffer {
		b, ints := w.AllocInts(len(v)), v
		w.CopyInts(b, ints)
		return b
	}
	w.data, w.classes, w.order = upload(images), upload(labels), upload(order)
	return w
}

// step is a whole step, from fetching the batch to the update.
func (w *whole) step() error {
	p := w.m.Params()
	w.pace.GatherLabelled(w.x, w.data, w.labels, w.classes, w.order, pixels, 255)
	pass := nn.Pass{Backend: w.Pacer, Train: true, Zeroed: true, Random: w.pace.Random()}
	loss, rows, err := w.m.Learn(&pass, nn.Batch{X: nn.Tensor{Shape: []int{w.batch, pixels}, Data: w.x}, Labels: w.labels})
	if err != nil {
		return err
	}
	_, form := w.optimizer.Hyper(w.pace.Step())
	form.Spend(w.Pacer, p, w.state, w.pace.Hyper(), 1/float32(rows))
	w.pace.Tick(loss, rows)
	return nil
}

// run runs all steps. each is the number of steps per recording; 0 means not to record.
func (w *whole) run(each int) (o outcome) {
	recorded := map[int]func() error{}
	for step := 0; step < wholeSteps; {
		k := min(max(each, 1), wholeSteps-step) // the last one may be shorter
		switch {
		case each == 0:
			require.NoError(w.t, w.step())
		case recorded[k] != nil:
			require.NoError(w.t, recorded[k]())
		default:
			replay, err := w.Record(fmt.Sprint(k, " steps"), func() error {
				for range k {
					if err := w.step(); err != nil {
						return err
					}
				}
				return nil
			})
			require.NoError(w.t, err)
			recorded[k] = replay
		}
		step += k
	}
	o.losses = make([]float32, wholeSteps)
	require.NoError(w.t, w.pace.Losses(w.t.Context(), 0, o.losses))
	o.weights = read(w, w.m.Params().Values)
	o.average = read(w, w.state.Slots[optim.SlotAverage])
	return o
}

// rising returns Adam with a learning rate that differs from step to step.
func rising() optim.Recordable {
	o := optim.DefaultAdam()
	o.LearnRate = optim.WarmupLinear(.002, 8, wholeSteps)
	return o
}

// Recorded whole steps have the same bits as steps that are not recorded, whatever the
// number of steps in a recording, and are near those of nn/cpu.
func TestWholeStep(t *testing.T) {
	for name, k := range map[string]training{"perceptron": wholePerceptron, "convnet": wholeConvnet} {
		t.Run(name, func(t *testing.T) {
			var want outcome
			within(t, gpu.Options{}, func(b *gpu.Backend) { want = newWhole(t, b, k, rising()).run(0) })
			for _, each := range []int{1, 4, 8} {
				within(t, gpu.Options{}, func(b *gpu.Backend) {
					require.Equal(t, want, newWhole(t, b, k, rising()).run(each), "%d steps in a recording", each)
				})
			}
			within(t, gpu.Options{Plain: true}, func(b *gpu.Backend) {
				require.Equal(t, want, newWhole(t, b, k, rising()).run(4), "repeated without a graph")
			})

			host := cpu.New(cpu.Options{})
			reference := newWhole(t, host, k, rising()).run(1)
			require.NoError(t, host.Close())
			near(t, reference.losses, want.losses, 1e-5)
			near(t, reference.weights, want.weights, 1e-3)
			near(t, reference.average, want.average, 1e-3)
		})
	}
}

// A recorded step is one driver call, or part of one, and has few nodes. That makes small
// networks fast.
func TestWholeStepCalls(t *testing.T) {
	for name, c := range map[string]struct {
		training
		nodes int // the maximum
	}{"perceptron": {wholePerceptron, 17}, "convnet": {wholeConvnet, 16}} {
		t.Run(name, func(t *testing.T) {
			for _, each := range []int{1, 4} {
				within(t, gpu.Options{}, func(b *gpu.Backend) {
					w := newWhole(t, b, c.training, rising())
					key := fmt.Sprint(each, " steps")
					replay, err := b.Record(key, func() error {
						for range each {
							if err := w.step(); err != nil {
								return err
							}
						}
						return nil
					})
					require.NoError(t, err)
					nodes, err := b.Nodes(key)
					require.NoError(t, err)
					t.Logf("kernels of a graph, steps at once %d: %d", each, nodes)
					if emulated(b) { // on a GPU the number of kernels per product is cuBLASLt's choice
						require.LessOrEqual(t, nodes, each*c.nodes)
						require.Zero(t, nodes%each)
					}
					before := b.Calls()
					for range 8 / each {
						require.NoError(t, replay())
					}
					before.Repeats += 8 / each
					require.Equal(t, before, b.Calls(), "only repetitions, and no copy")
				})
			}
			_, err := open(t, gpu.Options{}).Nodes("none")
			require.ErrorContains(t, err, `no recording "none"`)
		})
	}
}

// An update is two nodes, whatever the number of parameters, and Tick is one.
func TestUpdateNodes(t *testing.T) {
	within(t, gpu.Options{}, func(b *gpu.Backend) {
		w := newWhole(t, b, wholePerceptron, rising())
		require.Len(t, w.m.Params().List, 6)
		loss := b.Alloc(1)
		_, err := b.Record("update", func() error {
			_, form := w.optimizer.Hyper(0)
			form.Apply(b, w.m.Params(), w.state, w.pace.Hyper())
			w.pace.Tick(loss, 1)
			return nil
		})
		require.NoError(t, err)
		nodes, err := b.Nodes("update")
		require.NoError(t, err)
		require.Equal(t, 3, nodes)
	})
}

// After Forget a recording cannot be repeated, and its key can be reused.
func TestForget(t *testing.T) {
	within(t, gpu.Options{}, func(b *gpu.Backend) {
		v := upload(b, 1)
		double := func() error { b.Scale(v, 2); return nil }
		replay, err := b.Record("k", double)
		require.NoError(t, err)
		require.NoError(t, replay())
		require.NoError(t, b.Forget())
		require.ErrorContains(t, replay(), `recording "k": Forget has ended it`)
		_, err = b.Nodes("k")
		require.ErrorContains(t, err, `no recording "k"`)
		replay, err = b.Record("k", double)
		require.NoError(t, err)
		require.NoError(t, replay())
		require.Equal(t, []float32{16}, read(b, v))
		_, err = b.Record("inside", func() error { return b.Forget() })
		require.ErrorContains(t, err, "Forget inside Record")
	})
}

// When the table of hyper-parameters is used up, one or two copies refill it.
func TestPaceRefills(t *testing.T) {
	within(t, gpu.Options{}, func(b *gpu.Backend) {
		const keep, steps = 10, 95
		pace := b.NewPace(nn.PaceConfig{Keep: keep, Hyper: func(step int) (h [nn.HyperLen]float32) {
			h[0] = float32(step)
			return h
		}})
		loss := b.Alloc(1)
		replay, err := b.Record("k", func() error {
			b.Zero(loss)
			b.Axpy(loss, 1, pace.Hyper().Slice(0, 1))
			pace.Tick(loss, 1)
			return nil
		})
		require.NoError(t, err)
		before := b.Calls().Copies
		for step := 1; step < steps; step++ {
			require.NoError(t, replay())
			var got [2]float32
			require.NoError(t, pace.Losses(t.Context(), step-1, got[:]))
			require.Equal(t, [2]float32{float32(step - 1), float32(step)}, got)
		}
		require.LessOrEqual(t, b.Calls().Copies-before, 2*steps/(keep-2))
		_, err = b.Record("too many", func() error {
			for range keep {
				pace.Tick(loss, 1)
			}
			return nil
		})
		require.ErrorContains(t, err, "10 steps in one recording are too many for a Pace that keeps 10")
		require.ErrorContains(t, pace.Losses(t.Context(), 0, nil), "10 steps in one recording")
		require.Error(t, b.Sync(t.Context()))
	})
}

// A Pace that begins where an earlier one has stopped draws its own random numbers, which
// advance.
func TestSecondPace(t *testing.T) {
	within(t, gpu.Options{}, func(b *gpu.Backend) {
		config := nn.PaceConfig{Random: nn.Stream{Seed: 1, Stride: 1}, Hyper: func(int) (h [nn.HyperLen]float32) { return h }}
		first, loss, mask, ones := b.NewPace(config), b.Alloc(1), b.Alloc(256), upload(b, slices.Repeat([]float32{1}, 256)...)
		first.Tick(loss, 1)
		second := b.NewPace(config)
		second.Seek(1, 0)
		require.Equal(t, first.Random(), second.Random())
		replay, err := b.Record("k", func() error {
			b.Dropout(mask, ones, 256, .5, 0, second.Random())
			second.Tick(loss, 1)
			return nil
		})
		require.NoError(t, err)
		require.NoError(t, replay())
		before := read(b, mask)
		require.NoError(t, replay())
		require.NotEqual(t, before, read(b, mask))
	})
}

// A recording refuses calls that it cannot repeat, and a second Pace.
func TestPaceRefuses(t *testing.T) {
	within(t, gpu.Options{}, func(b *gpu.Backend) {
		none := func(int) (h [nn.HyperLen]float32) { return h }
		one, other := b.NewPace(nn.PaceConfig{Hyper: none}), b.NewPace(nn.PaceConfig{Hyper: none})
		loss := b.Alloc(1)
		for text, fn := range map[string]func() error{
			"Seek inside Record":   func() error { one.Seek(1, 0); return nil },
			"Losses inside Record": func() error { return one.Losses(t.Context(), 0, nil) },
			"Tick of two Paces":    func() error { one.Tick(loss, 1); other.Tick(loss, 1); return nil },
			"Alloc inside Record":  func() error { b.NewPace(nn.PaceConfig{Hyper: none}); return nil },
		} {
			_, err := b.Record("k", fn)
			require.ErrorContains(t, err, text)
			_ = b.Sync(t.Context()) // may return the error again, but not that of Losses
		}
		require.NoError(t, b.Sync(t.Context()))
	})
}

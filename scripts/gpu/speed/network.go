package main

import (
	"math/rand/v2"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/gpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
)

const (
	pixels        = 784
	classes       = 10
	stepsPerGraph = 8
)

// Our ways to take a step. baselines.py names PyTorch's.
const (
	byLaunch = "launch by launch"
	byGraph  = "one graph a step"
	byGraphs = "eight steps a graph"
)

// kinds are the arithmetics of products, with the names of baselines.py.
var kinds = []struct {
	name    string
	options gpu.Options
}{{"fp32", gpu.Options{}}, {"TF32", gpu.Options{TF32: true}}, {"bf16", gpu.Options{BF16: true}}}

// A network is a model and the shape of its data.
type network struct {
	name                 string
	layer                func() nn.Layer
	optimizer            optim.Recordable
	rows, width, classes int
}

func networks(rows int) []network {
	return []network{
		{"MLP", func() nn.Layer { return models.ReluReluSoftmax(128, .2) }, optim.DefaultAdam(), rows, pixels, classes},
		{"ConvNet", models.ConvNet, optim.DefaultSGD(.001), rows, pixels, classes},
	}
}

// squareOf returns four layers of equal width. They have biases, unlike PyTorch's.
func squareOf(width int) network {
	layer := func() nn.Layer {
		return nn.Chain(&nn.Linear{Out: width}, &nn.Linear{Out: width}, &nn.Linear{Out: width}, &nn.Softmax{InitW: nn.GlorotUniform})
	}
	return network{"square", layer, optim.DefaultSGD(.001), width, width, width}
}

// A trainer is a network on a device, with the one batch that it trains on.
type trainer struct {
	*gpu.Backend
	network
	m     *nn.Classifier
	state *optim.State
	pace  nn.Pace
	data  nn.Batch
}

func newTrainer(b *gpu.Backend, n network) (*trainer, error) {
	m, err := nn.NewClassifier(b, n.layer(), []int{n.width}, n.classes, 1)
	if err != nil {
		return nil, err
	}
	t := &trainer{
		Backend: b, network: n, m: m, state: optim.NewState(b, m.Params(), n.optimizer),
		pace: b.NewPace(nn.PaceConfig{
			Random: nn.Stream{Seed: 1},
			Hyper:  func(step int) [nn.HyperLen]float32 { h, _ := n.optimizer.Hyper(step); return h },
		}),
		data: nn.Batch{X: nn.Tensor{Shape: []int{n.rows, n.width}, Data: b.Alloc(n.rows * n.width)}, Labels: b.AllocInts(n.rows)},
	}
	r := rand.New(rand.NewPCG(1, 2))
	x, labels := make([]float32, n.rows*n.width), make([]int32, n.rows)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	for i := range labels {
		labels[i] = r.Int32N(int32(n.classes))
	}
	b.Copy(t.data.X.Data, x)
	b.CopyInts(t.data.Labels, labels)
	return t, nil
}

// step makes a forward pass, a backward pass and an update.
func (t *trainer) step() error {
	p := t.m.Params()
	loss, rows, err := t.m.Learn(&nn.Pass{Backend: t.Backend, Train: true, Zeroed: true, Random: t.pace.Random()}, t.data)
	if err != nil {
		return err
	}
	_, form := t.optimizer.Hyper(t.pace.Step())
	form.Spend(t.Backend, p, t.state, t.pace.Hyper(), 1/float32(rows))
	t.pace.Tick(loss, rows)
	return nil
}

// way returns a function that makes each steps.
func (t *trainer) way(name string) (run func() error, each int, err error) {
	each = map[string]int{byLaunch: 1, byGraph: 1, byGraphs: stepsPerGraph}[name]
	if name == byLaunch {
		return t.step, each, nil
	}
	run, err = t.Record(name, func() error {
		for range each {
			if err := t.step(); err != nil {
				return err
			}
		}
		return nil
	})
	return run, each, err
}

package models_test

import (
	"math/rand/v2"
	"testing"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
)

const benchRows = 128

// A step of Thinc's MNIST example: 784-128-128-10, batch 128, dropout, Adam.
func BenchmarkStep(b *testing.B) {
	benchmarkStep(b, models.ReluReluSoftmax(128, .2), optim.DefaultAdam())
	const flops = 2 * benchRows * (2*784*128 + 3*128*128 + 3*128*10)
	b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}

// A step of Ray's parameter server example, batch 128.
func BenchmarkConvNetStep(b *testing.B) {
	benchmarkStep(b, models.ConvNet(), optim.DefaultSGD(.01))
}

func benchmarkStep(b *testing.B, l nn.Layer, o optim.Optimizer) {
	be := cpu.New(cpu.Options{})
	m, err := nn.NewClassifier(be, l, []int{784}, 10, 1)
	if err != nil {
		b.Fatal(err)
	}
	x, labels := make([]float32, benchRows*784), make([]int32, benchRows)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range x {
		x[i] = random.Float32()
	}
	for i := range labels {
		labels[i] = random.Int32N(10)
	}
	batch := nn.Batch{X: nn.Tensor{Shape: []int{benchRows, 784}, Data: nn.Host(x)}, Labels: nn.HostInts(labels)}
	benchmarkLearn(b, be, m, batch, o)
}

func benchmarkLearn(b *testing.B, be nn.Backend, m nn.Model[nn.Batch], batch nn.Batch, o optim.Optimizer) {
	p := &nn.Pass{Backend: be, Train: true}
	s := optim.NewState(be, m.Params(), o)
	b.ReportAllocs()
	for b.Loop() {
		be.Zero(m.Params().Grads)
		_, weight, err := m.Learn(p, batch)
		if err != nil {
			b.Fatal(err)
		}
		be.Scale(m.Params().Grads, 1/float32(weight))
		optim.Step(o, be, m.Params(), s)
		p.Random.Step++
	}
}

// A step of examples/chars.cfg: 16 rows of 64 characters, of 100 different ones.
func BenchmarkCharTransformerStep(b *testing.B) { benchmarkText(b, models.CharTransformer(64, 4, 2)) }

// A step of scripts/bench-transformer.sh, of as many characters.
func BenchmarkWideTransformerStep(b *testing.B) { benchmarkText(b, models.CharTransformer(128, 4, 4)) }

func benchmarkText(b *testing.B, l nn.Layer) {
	const rows, positions, characters = 16, 64, 100
	be := cpu.New(cpu.Options{})
	m, err := nn.NewPositionClassifier(be, l, nn.Sequence{Positions: positions, IDs: characters, Classes: characters}, 1)
	if err != nil {
		b.Fatal(err)
	}
	ids, labels, random := make([]int32, rows*positions), make([]int32, rows*positions), rand.New(rand.NewPCG(1, 2))
	for i := range ids {
		ids[i], labels[i] = random.Int32N(characters), random.Int32N(characters)
	}
	benchmarkLearn(b, be, m, nn.Batch{X: nn.Tensor{Shape: []int{rows, positions}, Data: nn.HostInts(ids)}, Labels: nn.HostInts(labels)}, optim.DefaultAdam())
}

// The tok2vec of spaCy's default.cfg, on ten documents of 17 tokens.
func BenchmarkTok2VecStep(b *testing.B) {
	be, builder := cpu.New(cpu.Options{}), nn.NewBuilder(1)
	builder.TakesDocuments()
	l := models.Tok2Vec{
		Embed:  models.MultiHashEmbed{Width: 96, Attrs: []string{"NORM", "PREFIX", "SUFFIX", "SHAPE"}, Rows: []int{2000, 1000, 1000, 1000}},
		Encode: models.MaxoutWindowEncoder{Width: 96, Depth: 4, Window: 1, Pieces: 3},
	}.Layer(.1)
	if _, err := l.Init([]int{4, 2}, nil, builder); err != nil {
		b.Fatal(err)
	}
	params, err := builder.Build(be)
	if err != nil {
		b.Fatal(err)
	}
	x := someIDs(17, 17, 17, 17, 17, 17, 17, 17, 17, 17)
	p, o := &nn.Pass{Backend: be, Train: true}, optim.DefaultAdam()
	s := optim.NewState(be, params, o)
	b.ReportAllocs()
	for b.Loop() {
		be.Zero(params.Grads)
		be.Recycle()
		y, back := l.Forward(p, x)
		back(y)
		optim.Step(o, be, params, s)
		p.Random.Step++
	}
}

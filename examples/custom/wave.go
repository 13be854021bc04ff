package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/portable"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// wave is a dataset that is computed: points of a curve. One training point of ten is far
// off, and test points are exact.
type wave struct{}

const (
	waveTrain, waveTest = 2000, 500
	waveSeed            = 7
)

// makeWave finds the dataset: there is one.
func makeWave(arg string, _ catalog.Options) (catalog.Dataset, error) {
	if arg != "" {
		return nil, fmt.Errorf("unknown data %q; use wave, which takes no argument", "wave:"+arg)
	}
	return wave{}, nil
}

// Info implements catalog.Dataset.
func (wave) Info() catalog.Info {
	return catalog.Info{Name: "wave", Train: waveTrain, Test: waveTest, Bytes: 8 * (waveTrain + waveTest)}
}

// Task implements catalog.Dataset.
func (wave) Task() string { return "curve.v1" }

// open computes the points.
func (wave) open() (catalog.Table[points], error) {
	random := rand.New(rand.NewPCG(waveSeed, 0))
	train, test := newColumns(waveTrain), newColumns(waveTest)
	for i := range train.t {
		t := 2*random.Float64() - 1 // exact, even if fused
		train.set(i, t, height(t)+float64(.05*portable.Normal(random.Float64(), random.Float64())))
		if random.IntN(10) == 0 {
			train.y[i] += 5
		}
	}
	for i := range test.t {
		t := 2*float64(i)/(waveTest-1) - 1
		test.set(i, t, height(t))
	}
	sum := sha256.New()
	for _, values := range [][]float32{train.t, train.y, test.t, test.y} {
		if err := binary.Write(sum, binary.LittleEndian, values); err != nil {
			return catalog.Table[points]{}, err
		}
	}
	return catalog.Table[points]{Sum: hex.EncodeToString(sum.Sum(nil)), Train: train.split(), Test: test.split()}, nil
}

// height is the curve, at a time from -1 to 1. Workers train only on equal data, so it has
// the same bits on every processor.
func height(t float64) float64 {
	return portable.Sin(3*math.Pi*t) + float64(.5*portable.Cos(7*math.Pi*t))
}

// columns are points in host memory.
type columns struct{ t, y []float32 }

func newColumns(n int) columns { return columns{make([]float32, n), make([]float32, n)} }

func (c columns) set(i int, t, y float64) { c.t[i], c.y[i] = float32(t), float32(y) }

func (c columns) split() catalog.Split[points] {
	return catalog.Split[points]{Rows: len(c.t), Stage: c.stage}
}

// stage copies rows into the memory of a backend.
func (c columns) stage(room int, b nn.Backend) data.Stage[points] {
	batch, host := newPoints(b, nil, nil, room), newColumns(room)
	return func(rows []int32) (points, error) {
		for i, row := range rows {
			host.t[i], host.y[i] = c.t[row], c.y[row]
		}
		return copied(b, batch, host, len(rows)), nil
	}
}

// copied returns the first n points of a batch, with the values of host.
func copied(b nn.Backend, batch points, host columns, n int) points {
	column := func(to nn.Tensor, from []float32) nn.Tensor {
		part := nn.Tensor{Shape: []int{n, 1}, Data: to.Data.Slice(0, n)}
		b.Copy(part.Data, from[:n])
		return part
	}
	return points{t: column(batch.t, host.t), y: column(batch.y, host.y)}
}

package nn

import (
	"hash/fnv"
	"math"

	"github.com/ringtrain/ringtrain/nn/portable"
)

// An Initializer sets the values of a new parameter of the given shape, in row-major
// order, using random numbers from d.
type Initializer func(values []float32, shape []int, d *Draws)

// Draws is an endless sequence of random numbers that depends only on a seed and a
// parameter's name.
type Draws struct {
	key     [2]uint32
	counter [4]uint32
	words   [4]uint32
	next    int
}

// initialStep is the step number reserved for initial weights; training would reach it
// after four billion steps.
const initialStep = math.MaxUint32

func newDraws(seed uint64, name string) *Draws {
	h := fnv.New64a()
	h.Write([]byte(name))
	id := h.Sum64()
	return &Draws{
		key:     seedKey(seed),
		counter: [4]uint32{0, uint32(id), uint32(id >> 32), initialStep},
		next:    4,
	}
}

// Float returns the next number, uniform in [0, 1) with a resolution of 2⁻²⁴.
func (d *Draws) Float() float32 {
	if d.next == len(d.words) {
		d.words = Philox(d.key, d.counter)
		d.counter[0]++
		d.next = 0
	}
	w := d.words[d.next]
	d.next++
	return float32(w>>8) * 0x1p-24
}

// normal returns the next number, normally distributed.
func (d *Draws) normal() float32 {
	u, v := d.Float(), d.Float()
	return float32(portable.Normal(float64(u), float64(v)))
}

// Zeros is Thinc's zero_init.
func Zeros(values []float32, _ []int, _ *Draws) { clear(values) }

// Ones sets every value to 1.
func Ones(values []float32, _ []int, _ *Draws) {
	for i := range values {
		values[i] = 1
	}
}

// Uniform is Thinc's uniform_init: numbers uniform in [lo, hi).
func Uniform(lo, hi float32) Initializer {
	return func(values []float32, _ []int, d *Draws) {
		for i := range values {
			values[i] = lo + float32((hi-lo)*d.Float())
		}
	}
}

// Normal draws normal numbers with mean 0 and the given standard deviation.
func Normal(deviation float32) Initializer {
	return func(values []float32, _ []int, d *Draws) {
		for i := range values {
			values[i] = deviation * d.normal()
		}
	}
}

// GlorotUniform is Thinc's glorot_uniform_init: numbers uniform in
// ±√(6/(shape[0]+shape[1])), the sum of inputs and outputs for W (nO, nI) (Glorot and
// Bengio, AISTATS 2010). For a shape with one dimension it uses shape[0] twice. The filters of a
// Conv2D, of shape (nO, nI, size, size), have size² times as many of both, as in PyTorch.
func GlorotUniform(values []float32, shape []int, d *Draws) {
	symmetric(math.Sqrt(6/float64(fan(shape, 0)+fan(shape, 1))), values, d)
}

// GlorotNormal is Thinc's glorot_normal_init, with standard deviation
// √(2/(shape[0]+shape[1])). Filters count as for GlorotUniform.
func GlorotNormal(values []float32, shape []int, d *Draws) {
	Normal(float32(math.Sqrt(2/float64(fan(shape, 0)+fan(shape, 1)))))(values, shape, d)
}

// HeUniform is Thinc's he_uniform_init: numbers uniform in ±√(6/shape[1]) (He et al.,
// ICCV 2015). Filters count as for GlorotUniform, here and below.
func HeUniform(values []float32, shape []int, d *Draws) {
	symmetric(math.Sqrt(6/float64(fan(shape, 1))), values, d)
}

// HeNormal is Thinc's he_normal_init, with standard deviation √(2/shape[1]).
func HeNormal(values []float32, shape []int, d *Draws) {
	Normal(float32(math.Sqrt(2/float64(fan(shape, 1)))))(values, shape, d)
}

// LecunUniform is Thinc's lecun_uniform_init: numbers uniform in ±√(3/shape[1]).
func LecunUniform(values []float32, shape []int, d *Draws) {
	symmetric(math.Sqrt(3/float64(fan(shape, 1))), values, d)
}

// LecunNormal is Thinc's lecun_normal_init, with standard deviation √(1/shape[1]).
func LecunNormal(values []float32, shape []int, d *Draws) {
	Normal(float32(math.Sqrt(1/float64(fan(shape, 1)))))(values, shape, d)
}

// FanInUniform is PyTorch's default for the weights and biases of Linear and Conv2d:
// numbers uniform in ±1/√n. n is the number of inputs of one output, the product of all
// dimensions but the first.
func FanInUniform(values []float32, shape []int, d *Draws) {
	symmetric(1/math.Sqrt(float64(product(shape[min(1, len(shape)):]))), values, d)
}

// symmetric sets values to numbers uniform in ±a.
func symmetric(a float64, values []float32, d *Draws) {
	Uniform(-float32(a), float32(a))(values, nil, d)
}

// fan returns dimension i of a shape, 0 or 1, or the last if there are fewer. It is the number of
// outputs or inputs of an element, which filters multiply by their area.
func fan(shape []int, i int) int {
	if len(shape) == 0 {
		return 1
	}
	n := shape[min(i, len(shape)-1)]
	if len(shape) == 4 {
		n *= shape[2] * shape[3]
	}
	return n
}

// forShape returns an Initializer that always sees this shape: the range of a bias
// depends on the shape of its layer's weights.
func (f Initializer) forShape(shape []int) Initializer {
	return func(values []float32, _ []int, d *Draws) { f(values, shape, d) }
}

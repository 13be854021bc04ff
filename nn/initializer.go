package nn

import (
	"hash/fnv"
	"math"
)

// An Initializer sets the values of a new parameter of the given shape, in
// row-major order, to numbers drawn from d.
type Initializer func(values []float32, shape []int, d *Draws)

// Draws is an endless sequence of random numbers that depends on a seed and a
// parameter's name only.
type Draws struct {
	key     [2]uint32
	counter [4]uint32
	words   [4]uint32
	next    int
}

// initialStep is the step of the random numbers for initial weights; training
// would reach it after four billion steps.
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

// Float returns the next number, uniform in [0, 1) in steps of 2⁻²⁴.
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

// Zeros is thinc's zero_init.
func Zeros(values []float32, _ []int, _ *Draws) { clear(values) }

// Uniform returns thinc's uniform_init: numbers uniform in [lo, hi).
func Uniform(lo, hi float32) Initializer {
	return func(values []float32, _ []int, d *Draws) {
		for i := range values {
			values[i] = lo + (hi-lo)*d.Float()
		}
	}
}

// GlorotUniform is thinc's glorot_uniform_init: numbers uniform in ±a with
// a = √(6/(shape[0]+shape[1])), for W (nO, nI) the sum of its widths (Glorot and
// Bengio, AISTATS 2010). A shape of one dimension counts it twice.
func GlorotUniform(values []float32, shape []int, d *Draws) {
	a := float32(math.Sqrt(6 / float64(shape[0]+shape[min(1, len(shape)-1)])))
	Uniform(-a, a)(values, shape, d)
}

package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ringtrain/ringtrain/nn"
)

// The loops for 2 and 3 pieces choose the first largest piece, as argmax does, and keep the
// bits of NaNs.
func TestMaxoutChoosesAsArgmax(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 9))
	for _, pieces := range []int{1, 2, 3, 4} {
		const outputs = 3000
		x, dy := pool(outputs*pieces, r), pool(outputs, r)
		for i := 1; i < len(x); i++ {
			if r.IntN(4) == 0 {
				x[i] = x[i-1]
			}
		}
		y, dx := make([]float32, outputs), make([]float32, len(x))
		for i := range outputs {
			best := argmax(x[i*pieces:][:pieces])
			y[i], dx[i*pieces+best] = x[i*pieces+best], dy[i]
		}
		got, inPlace := make([]float32, outputs), slices.Clone(x)
		maxoutLoop(got, x, pieces)
		same(t, y, got, fmt.Sprintf("%d pieces", pieces))
		maxoutGradLoop(inPlace, dy, inPlace, pieces)
		same(t, dx, inPlace, fmt.Sprintf("gradient of %d pieces", pieces))
	}
}

func BenchmarkMaxout(b *testing.B) {
	r := rand.New(rand.NewPCG(6, 9))
	for _, pieces := range []int{2, 3, 4} {
		const outputs = 115 * 96
		x, y, dx := nn.Host(make([]float32, outputs*pieces)), nn.Host(make([]float32, outputs)), nn.Host(make([]float32, outputs*pieces))
		for i := range x.Float32s() {
			x.Float32s()[i] = float32(r.NormFloat64())
		}
		var be Backend
		for _, c := range []struct {
			name string
			f    func()
		}{
			{"forward", func() { be.Maxout(y, x, pieces) }},
			{"backward", func() { be.MaxoutGrad(dx, y, x, pieces) }},
		} {
			b.Run(fmt.Sprintf("%s/%d", c.name, pieces), func(b *testing.B) {
				for b.Loop() {
					c.f()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/outputs, "ns/output")
			})
		}
	}
}

//go:build !noasm && !race

package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ringtrain/ringtrain/nn"
)

func TestMaxoutEqualsLoops(t *testing.T) {
	needWide(t)
	r := rand.New(rand.NewPCG(3, 9))
	for _, pieces := range []int{1, 2, 3, 5} {
		for _, outputs := range []int{0, 1, 15, 16, 17, 96, stretch + 20} {
			for _, unusual := range []bool{false, true} {
				x, dy := numbers(outputs*pieces, r, unusual), numbers(outputs, r, unusual)
				for i := range x {
					if i > 0 && r.IntN(4) == 0 {
						x[i] = x[i-1] // the first of equal pieces counts
					}
				}
				what := fmt.Sprintf("%d outputs of %d pieces", outputs, pieces)
				var b Backend
				bothWidths(t, what, func() []float32 {
					y := make([]float32, outputs)
					b.Maxout(nn.Host(y), host(x), pieces)
					return y
				})
				bothWidths(t, "gradient of "+what, func() []float32 {
					dx := host(x)
					b.MaxoutGrad(dx, host(dy), dx, pieces)
					return dx.Float32s()
				})
			}
		}
	}
}

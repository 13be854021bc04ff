package cpu

import "github.com/ringtrain/ringtrain/nn"

// Scale implements nn.Update.
func (b *Backend) Scale(y nn.Buffer, a float32) {
	ys := y.Float32s()
	for i, v := range ys {
		ys[i] = a * v
	}
}

// Axpy implements nn.Update.
func (b *Backend) Axpy(y nn.Buffer, a float32, x nn.Buffer) {
	ys := y.Float32s()
	for i, v := range x.Float32s()[:len(ys)] {
		ys[i] += a * v
	}
}

// SquaredNorm implements nn.Update. Within a block, element i belongs to sum i
// mod 4 of four, so that the additions of neighbours do not wait for each other.
func (b *Backend) SquaredNorm(sums, g, w, hyper nn.Buffer) {
	gs, ws, l2 := g.Float32s(), w.Float32s(), hyper.Float32s()[nn.HyperL2]
	for k := range sums.Float32s() {
		lo, hi := k*nn.BlockSize, min((k+1)*nn.BlockSize, len(gs))
		sums.Float32s()[k] = float32(squares(gs[lo:hi], ws[lo:hi], l2))
	}
}

func squares(g, w []float32, l2 float32) float64 {
	w = w[:len(g)]
	var s [4]float64
	i := 0
	for ; i+4 <= len(g); i += 4 {
		a, b := float64(g[i]+l2*w[i]), float64(g[i+1]+l2*w[i+1])
		c, d := float64(g[i+2]+l2*w[i+2]), float64(g[i+3]+l2*w[i+3])
		s[0] += a * a
		s[1] += b * b
		s[2] += c * c
		s[3] += d * d
	}
	for ; i < len(g); i++ {
		a := float64(g[i] + l2*w[i])
		s[i%4] += a * a
	}
	return s[0] + s[1] + (s[2] + s[3])
}

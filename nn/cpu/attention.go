package cpu

import (
	"gonum.org/v1/gonum/blas"

	"github.com/ringtrain/ringtrain/nn"
)

// queries is how many queries of a head are computed at once. With a causal mask, the
// products skip the keys after the last of them.
const queries = 64

// Attention implements nn.Sequences. The products read heads where they lie in qkv.
func (b *Backend) Attention(y, weights, qkv nn.Buffer, a nn.Heads) {
	ys, ws := y.Float32s(), weights.Float32s()
	ones := b.ones(a.Positions)
	scale := a.Scale()
	b.eachHead(qkv, a, func(h head) {
		w, out := ws[h.weights:], ys[h.at:]
		h.eachBlock(func(lo, hi, keys int) {
			block := w[lo*a.Positions:]
			b.product(matrix{block, a.Positions, false}, matrix{h.q[lo*h.pitch:], h.pitch, false}, matrix{h.k, h.pitch, true}, hi-lo, keys, a.Width, 0)
			for t := lo; t < hi; t++ {
				softmaxWeights(w[t*a.Positions:][:keys], h.seen(t), scale, ones)
			}
			b.product(matrix{out[lo*h.width:], h.width, false}, matrix{block, a.Positions, false}, matrix{h.v, h.pitch, false}, hi-lo, a.Width, keys, 0)
		})
	})
}

// softmaxWeights turns the first n scores of a query into weights, and the rest into 0.
func softmaxWeights(s []float32, n int, scale float32, ones []float32) {
	clear(s[n:])
	s = s[:n]
	top := float32(s[0] * scale)
	for i, v := range s {
		v *= scale
		s[i] = v
		top = max(top, v)
	}
	expLoop(s[fastExp(s, top):], top)
	share := 1 / dot(s, ones)
	scaleLoop(s[fastScale(s, share):], share)
}

// AttentionGrad implements nn.Sequences. With p = dy[t]·value[u], the gradient of a score
// is w·(p - Σ w·p), times the scale.
func (b *Backend) AttentionGrad(dqkv, dy, weights, qkv nn.Buffer, a nn.Heads) {
	dys, ws, ds := dy.Float32s(), weights.Float32s(), dqkv.Float32s()
	scores := b.temp.take(min(queries, a.Positions) * a.Positions)
	scale := a.Scale()
	b.eachHead(qkv, a, func(h head) {
		w, d := ws[h.weights:], dys[h.at:]
		dq, dk, dv := ds[h.first:], ds[h.first+h.width:], ds[h.first+2*h.width:]
		beta := float32(0) // the last block of queries comes first, and sees all keys
		h.eachBlock(func(lo, hi, keys int) {
			block, dyBlock := matrix{w[lo*a.Positions:], a.Positions, true}, matrix{d[lo*h.width:], h.width, false}
			b.product(matrix{dv, h.pitch, false}, block, dyBlock, keys, a.Width, hi-lo, beta)
			b.product(matrix{scores, a.Positions, false}, dyBlock, matrix{h.v, h.pitch, true}, hi-lo, keys, a.Width, 0)
			for t := lo; t < hi; t++ {
				p, weight := scores[(t-lo)*a.Positions:][:keys], w[t*a.Positions:][:keys]
				sum := dot(weight, p)
				for i, v := range p {
					p[i] = float32(weight[i]*(v-sum)) * scale
				}
			}
			b.product(matrix{dq[lo*h.pitch:], h.pitch, false}, matrix{scores, a.Positions, false}, matrix{h.k, h.pitch, false}, hi-lo, a.Width, keys, 0)
			b.product(matrix{dk, h.pitch, false}, matrix{scores, a.Positions, true}, matrix{h.q[lo*h.pitch:], h.pitch, false}, keys, a.Width, hi-lo, beta)
			beta = 1
		})
	})
}

// A head is one head of one row: where its vectors begin, and the distance between those of
// neighbouring positions.
type head struct {
	nn.Heads
	q, k, v []float32
	pitch   int // in qkv
	width   int // of a result of all heads: the distance in y
	first   int // offset in qkv
	at      int // offset in y
	weights int // offset in weights
}

// eachHead calls f with every head of every row.
func (b *Backend) eachHead(qkv nn.Buffer, a nn.Heads, f func(h head)) {
	x, width := qkv.Float32s(), a.Heads*a.Width
	for row := range images(x, 3*width*a.Positions) {
		for k := range a.Heads {
			first := 3*width*a.Positions*row + k*a.Width
			f(head{
				Heads: a, q: x[first:], k: x[first+width:], v: x[first+2*width:], pitch: 3 * width, width: width,
				first: first, at: width*a.Positions*row + k*a.Width, weights: (row*a.Heads + k) * a.Positions * a.Positions,
			})
		}
	}
}

// eachBlock calls f with the bounds of each block of queries, the last one first, and how
// many keys they see.
func (h head) eachBlock(f func(lo, hi, keys int)) {
	for lo := (h.Positions - 1) / queries * queries; lo >= 0; lo -= queries {
		hi := min(lo+queries, h.Positions)
		f(lo, hi, h.seen(hi-1))
	}
}

// seen is how many keys position t sees.
func (h head) seen(t int) int {
	if h.Causal {
		return t + 1
	}
	return h.Positions
}

// A matrix is part of a larger one. pitch is the distance of its rows.
type matrix struct {
	v         []float32
	pitch     int
	transpose bool
}

// product sets z = x·y + beta·z, with z of m by n and inner dimension k.
func (b *Backend) product(z, x, y matrix, m, n, k int, beta float32) {
	order := func(transpose bool) blas.Transpose {
		if transpose {
			return blas.Trans
		}
		return blas.NoTrans
	}
	b.blas.Sgemm(order(x.transpose), order(y.transpose), m, n, k, 1, x.v, x.pitch, y.v, y.pitch, beta, z.v, z.pitch)
}

package cpu

import (
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu/sgemm"
)

// queries is how many queries of a head are computed at once. With a causal mask, the
// products skip the keys after the last of them.
const queries = 32

// Attention implements nn.Sequences. The products read heads where they lie in qkv.
func (b *Backend) Attention(y, weights, qkv nn.Buffer, a nn.Heads) {
	ys, ws := y.Float32s(), weights.Float32s()
	ones := b.ones(a.Positions)
	b.eachHead(qkv, a, func(h head) {
		w, out := ws[h.weights:], ys[h.at:]
		h.eachBlock(func(lo, hi, keys int) {
			block := w[lo*a.Positions:]
			b.heads.Multiply(matrix(block, a.Positions), matrix(h.q[lo*h.pitch:], h.pitch), flipped(h.k, h.pitch), sgemm.Shape{M: hi - lo, N: keys, K: a.Width}, 0)
			h.masked(lo, keys).weights(block, hi-lo, a.Positions, ones)
			b.heads.Multiply(matrix(out[lo*h.width:], h.width), matrix(block, a.Positions), matrix(h.v, h.pitch), sgemm.Shape{M: hi - lo, N: a.Width, K: keys}, 0)
		})
	})
}

// maskedRows are rows of scores, of which the first sees some keys, and each one after it
// step more.
type maskedRows struct {
	keys       int // of a row
	seen, step int
	scale      float32
}

// masked describes the scores of the queries from lo on.
func (h head) masked(lo, keys int) maskedRows {
	m := maskedRows{keys: keys, seen: keys, scale: h.Scale()}
	if h.Causal {
		m.seen, m.step = lo+1, 1
	}
	return m
}

// weights turns scores into weights, in rows that are pitch apart.
func (m maskedRows) weights(s []float32, rows, pitch int, ones []float32) {
	for t := fastWeights(s, rows, pitch, m); t < rows; t++ {
		softmaxWeights(s[t*pitch:][:m.keys], m.seen+t*m.step, m.scale, ones)
	}
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
			count, block, dyBlock := hi-lo, w[lo*a.Positions:], matrix(d[lo*h.width:], h.width)
			b.heads.Multiply(matrix(dv, h.pitch), flipped(block, a.Positions), dyBlock, sgemm.Shape{M: keys, N: a.Width, K: count}, beta)
			b.heads.Multiply(matrix(scores, a.Positions), dyBlock, flipped(h.v, h.pitch), sgemm.Shape{M: count, N: keys, K: a.Width}, 0)
			for t := fastScores(scores, block, count, a.Positions, keys, scale); t < count; t++ {
				scoresGrad(scores[t*a.Positions:][:keys], block[t*a.Positions:][:keys], scale)
			}
			b.heads.Multiply(matrix(dq[lo*h.pitch:], h.pitch), matrix(scores, a.Positions), matrix(h.k, h.pitch), sgemm.Shape{M: count, N: a.Width, K: keys}, 0)
			b.heads.Multiply(matrix(dk, h.pitch), flipped(scores, a.Positions), matrix(h.q[lo*h.pitch:], h.pitch), sgemm.Shape{M: keys, N: a.Width, K: count}, beta)
			beta = 1
		})
	})
}

// scoresGrad turns the gradients p of the weights w of a query into those of its scores.
func scoresGrad(p, w []float32, scale float32) {
	sum := dot(w, p)
	for i, v := range p {
		p[i] = float32(w[i]*(v-sum)) * scale
	}
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

// matrix returns a matrix that is part of v. pitch is the distance of its rows.
func matrix(v []float32, pitch int) sgemm.Matrix { return sgemm.Matrix{Data: v, Stride: pitch} }

// flipped is matrix, transposed.
func flipped(v []float32, pitch int) sgemm.Matrix {
	return sgemm.Matrix{Data: v, Stride: pitch, Transposed: true}
}

package nn

import "math"

// Sequences is the arithmetic of layers whose input is rows of positions. Rows are
// independent: the result for one row has the same bits whatever the other rows are.
type Sequences interface {
	// Embed sets row i of y, of the given width, to row ids[i] of table. ids are int32 and
	// must be rows of the table; a device may read or write anything if they are not.
	Embed(y, table, ids Buffer, width int)
	// EmbedGrad adds row i of dy to row ids[i] of dtable, for each i in order.
	EmbedGrad(dtable, dy, ids Buffer, width int)
	// Attention sets y to scaled dot-product attention (Vaswani et al., 2017). Each
	// position of each row of qkv has a query, a key and a value per head: a.Heads queries
	// of a.Width elements, then as many keys, then as many values. y has one result of
	// a.Width per head. With the products of queries and keys as in Gemm,
	//
	//	s[t,u] = (query[t]·key[u])·a.Scale()
	//	e[t,u] = exp(s[t,u] - max over u of s[t,u])
	//	w[t,u] = e[t,u]·(1/Σ e[t,u] over u)
	//	y[t] = Σ w[t,u]·value[u] over u, as in Gemm
	//
	// where exp is the float32 function of package nn/cpu and the sum of e is Σ as in
	// Norms. u runs over all positions or, if a.Causal is set, those from 0 to t. weights
	// has a.Weights(rows) elements and receives what AttentionGrad needs. y is neither
	// qkv nor weights.
	Attention(y, weights, qkv Buffer, a Heads)
	// AttentionGrad sets dqkv to the gradient of qkv. weights is what Attention of the
	// same qkv stored there; its contents are undefined afterwards. dqkv is no other
	// operand.
	AttentionGrad(dqkv, dy, weights, qkv Buffer, a Heads)
}

// Heads describes attention within rows.
type Heads struct {
	Positions int  // in one row
	Heads     int  // per position
	Width     int  // of one query, key, value or result
	Causal    bool // a position sees only itself and those before it
}

// Scale returns 1/√Width, rounded to float32.
func (a Heads) Scale() float32 { return float32(1 / math.Sqrt(float64(a.Width))) }

// Weights returns the length of the weights of rows.
func (a Heads) Weights(rows int) int { return rows * a.Heads * a.Positions * a.Positions }

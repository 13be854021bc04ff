package nn

// An ArenaUpdate is a Backend that can update all parameters of a model at once. On a
// device this takes two kernels in all, instead of two for each parameter. The results
// have the same bits as SquaredNorm followed by Adam or SGD on each parameter. Elements
// between parameters do not change, and only Follow changes running statistics (see
// [Param.Momentum]). It has the bits of Scale, then Axpy.
type ArenaUpdate interface {
	// AdamArena updates p.Values from the gradients g. m, v and average are arenas with
	// the same offsets as p; average may be empty. norms has one element per block of
	// every parameter, see [Params.Blocks].
	AdamArena(p *Params, g Gradients, m, v, average, norms, hyper Buffer)
	// SGDArena is AdamArena with SGD instead of Adam.
	SGDArena(p *Params, g Gradients, average, norms, hyper Buffer)
	// Follow updates a running statistic or a part of it: value becomes (1-momentum)·value +
	// momentum·mean, and average, unless it is empty, a copy of that.
	Follow(value, average, mean Buffer, momentum float32)
}

// Gradients describes the gradients for an update of all parameters at once.
type Gradients struct {
	Arena Buffer  // laid out like the Params
	Scale float32 // multiplies every gradient first
	Clear bool    // set the gradients of all trained parameters to 0 afterwards
}

// Blocks returns the number of blocks in all parameters. Every parameter starts a new
// block.
func (p *Params) Blocks() int {
	n := 0
	for _, q := range p.List {
		n += Blocks(q.Values.Len())
	}
	return n
}

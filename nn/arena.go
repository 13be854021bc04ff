package nn

// An ArenaUpdate is a Backend that updates all parameters of a model at once,
// which on a device takes two kernels where one parameter after the other takes
// two for each. The bits are those of SquaredNorm and Adam, or SGD, for each
// parameter by itself, and elements between parameters stay as they are.
type ArenaUpdate interface {
	// AdamArena updates p.Values by the gradients g. m, v and average, which may be
	// empty, are arenas with the offsets of p; norms has as many elements as all
	// parameters have blocks, see [Params.Blocks].
	AdamArena(p *Params, g Gradients, m, v, average, norms, hyper Buffer)
	// SGDArena is AdamArena with SGD in place of Adam.
	SGDArena(p *Params, g Gradients, average, norms, hyper Buffer)
}

// Gradients are those of an update of all parameters at once.
type Gradients struct {
	Arena Buffer  // with the offsets of the Params
	Scale float32 // they are multiplied by it before anything else
	Clear bool    // sets those of parameters to 0 afterwards
}

// Blocks returns how many blocks all parameters have, where none begins inside
// another's.
func (p *Params) Blocks() int {
	n := 0
	for _, q := range p.List {
		n += Blocks(q.Values.Len())
	}
	return n
}

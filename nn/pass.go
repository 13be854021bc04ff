package nn

// A Stream identifies the random numbers of one step. A number is Philox(key = Seed,
// counter = (column, global row, layer, step)), so it depends neither on how many workers
// share the step's global batch nor on the order in which they compute.
type Stream struct {
	Seed uint64
	Step uint64 // below 1<<48
	// Local row i of the batch is row First + i*Stride of the global batch. A
	// Stride of 0 means 1.
	First, Stride int
}

// Draw returns the random words for columns 4*block to 4*block+3 of a local row, in the
// layer with the given number (see [Builder.Random]; below 1<<16).
func (s Stream) Draw(layer uint32, row, block int) [4]uint32 {
	return Philox(s.Counter(layer, row, block))
}

// Counter returns the Philox key and counter of a Draw, for a Backend that makes
// many draws at once. The counter of the next block differs only in its first word,
// which is greater by 1.
func (s Stream) Counter(layer uint32, row, block int) (key [2]uint32, counter [4]uint32) {
	return seedKey(s.Seed), [4]uint32{
		uint32(block),
		uint32(s.globalRow(row)),
		layer&0xFFFF | uint32(s.Step>>32)<<16,
		uint32(s.Step),
	}
}

// globalRow returns the row of the global batch that holds local row i.
func (s Stream) globalRow(i int) int {
	if s.Stride == 0 {
		return s.First + i
	}
	return s.First + i*s.Stride
}

// seedKey splits a seed into a Philox key.
func seedKey(seed uint64) [2]uint32 { return [2]uint32{uint32(seed), uint32(seed >> 32)} }

// A Pass is one run of a batch through a model. The Pass and the model belong to one
// goroutine at a time.
type Pass struct {
	// Backend runs the pass. It must be the one the model was built with.
	Backend Backend
	// Train turns on training-only behaviour, such as dropout.
	Train bool
	// Random is the source of dropout masks.
	Random Stream
	// Zeroed means that all gradients are 0, so a layer may overwrite instead of add. A
	// layer that computes some gradients more than once in a pass must still add, and
	// must give its inner layers a copy of the Pass without Zeroed.
	Zeroed bool
	// Final, if not nil, is called during the backward pass: gradients at arena offset lo
	// and above will not change again in this pass. On a device they are final in stream
	// order. lo never grows and may repeat; a Model ends with Final(0). A layer whose
	// parts do not run in strict reverse order of declaration gives them a copy of the
	// Pass with Final nil, and calls Final itself.
	Final func(lo int)

	positions int      // of each row of the batch, which layers see as rows; 0 means 1
	bare      *Softmax // skips its softmax, because the model computes it together with the loss
}

// final reports that gradients at offset lo and above are final, if Final is set.
func (p *Pass) final(lo int) {
	if p.Final != nil {
		p.Final(lo)
	}
}

// release gives temporary memory back that is no longer needed, if the backend can use it.
func (p *Pass) release(b Buffer) {
	if r, ok := p.Backend.(Releaser); ok {
		r.Release(b)
	}
}

// perRow returns how many rows of a layer's input come from one row of the batch: more
// than 1 inside EachPosition.
func (p *Pass) perRow() int { return orOne(p.positions) }

package collective

// GatherBytes is how much a rank gives at most in an AllGather of a Reducer.
const GatherBytes = 4 << 10

// An Operation is one call as an Engine carries it out. A Group makes it once,
// and it is handed on by pointer from there to the transport: to copy what has
// just been stored in smaller pieces takes longer than to store it.
type Operation struct {
	Header          // Job, Epoch and Group are filled in by the engine
	Dst, Src Vector // may be the same memory
	Counts   []int  // of V operations
}

// set makes it a call of all.
func (o *Operation) set(seq, step uint64, c *Call, dst, src *Vector) {
	o.Seq, o.Step, o.Part, o.Len = seq, step, 0, 0
	o.Call.set(c)
	o.Dst.set(dst)
	o.Src.set(src)
	o.Counts = nil
}

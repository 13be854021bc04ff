package gpu

import (
	"encoding/binary"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/cuda/kernels"
	"github.com/ringtrain/ringtrain/nn"
)

// stopBytes is the size of the word in which Commit withholds an update.
const stopBytes = 4

var _ nn.ArenaUpdate = (*Backend)(nil)

// A layout is the arena kernels' table of where each parameter is in the arena.
type layout struct {
	runs, blocks cuda.Ptr
	count        int // of blocks
}

// layout returns the layout of p. The first call copies it to the device.
func (b *Backend) layout(p *nn.Params) (at layout) {
	if at, ok := b.layouts[p]; ok || b.failure != nil {
		return at
	}
	var offsets, sizes []int
	for _, q := range p.List {
		if q.Momentum > 0 { // a running statistic, which optimizers do not update
			continue
		}
		offsets, sizes = append(offsets, q.Offset), append(sizes, q.Values.Len())
	}
	runs, blocks := kernels.Plan(offsets, sizes)
	at.count = len(blocks)
	at.runs = b.table(runs)
	at.blocks = b.table(blocks)
	if b.failure == nil {
		b.layouts[p] = at
	}
	return at
}

// table copies structs of fixed size to lasting device memory. A recording does not
// repeat the copy.
func (b *Backend) table(v any) (at cuda.Ptr) {
	const method = "copying the layout of parameters"
	bytes, err := binary.Append(nil, binary.NativeEndian, v)
	if err == nil {
		at, err = b.lasting.next(max(1, len(bytes)))
	}
	if err == nil && b.failure == nil {
		err = b.staging.send(b.stream, at, bytes)
	}
	b.note(method, err)
	return at
}

// AdamArena implements nn.ArenaUpdate.
func (b *Backend) AdamArena(p *nn.Params, g nn.Gradients, m, v, average, norms, hyper nn.Buffer) {
	n := p.Values.Len()
	need("AdamArena", m.Len() == n && v.Len() == n)
	at := b.arena("AdamArena", p, g, average, norms, hyper)
	b.launch("adam_arena", at.count, b.at(p.Values), b.at(g.Arena), cuda.Float32(g.Scale), truth(g.Clear), b.at(m), b.at(v), b.at(average), b.at(norms), b.at(hyper),
		at.runs.Arg(), at.blocks.Arg(), b.stop.Arg())
}

// SGDArena implements nn.ArenaUpdate.
func (b *Backend) SGDArena(p *nn.Params, g nn.Gradients, average, norms, hyper nn.Buffer) {
	at := b.arena("SGDArena", p, g, average, norms, hyper)
	b.launch("sgd_arena", at.count, b.at(p.Values), b.at(g.Arena), cuda.Float32(g.Scale), truth(g.Clear), b.at(average), b.at(norms), b.at(hyper),
		at.runs.Arg(), at.blocks.Arg(), b.stop.Arg())
}

// Follow implements nn.ArenaUpdate.
func (b *Backend) Follow(value, average, mean nn.Buffer, momentum float32) {
	n := value.Len()
	need("Follow", mean.Len() == n && (average.Len() == 0 || average.Len() == n))
	b.launch("follow", n, b.at(value), b.at(average), b.at(mean), cuda.Float32(1-momentum), cuda.Float32(momentum), count(n), b.stop.Arg())
}

// arena queues the kernel that precedes an update. It computes the norms.
func (b *Backend) arena(method string, p *nn.Params, g nn.Gradients, average, norms, hyper nn.Buffer) layout {
	n := p.Values.Len()
	need(method, g.Arena.Len() == n && (average.Len() == 0 || average.Len() == n) && norms.Len() == p.Blocks() && hyper.Len() == nn.HyperLen)
	at := b.layout(p)
	b.launch("squared_norm_arena", at.count, b.at(norms), b.at(g.Arena), cuda.Float32(g.Scale), b.at(p.Values), b.at(hyper), at.runs.Arg(), at.blocks.Arg())
	return at
}

// truth returns a condition as a C int.
func truth(v bool) cuda.Arg {
	if v {
		return number(1)
	}
	return number(0)
}

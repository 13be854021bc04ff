package nntest

import (
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

// testArena checks that an update of all parameters at once has the bits of one update
// after the other, and does not change the elements between parameters.
func testArena(h *harness) {
	arena, ok := h.b.(nn.ArenaUpdate)
	if !ok {
		h.Skip("the backend does not implement nn.ArenaUpdate")
	}
	const total = 16 + 2*nn.BlockSize + 48
	offsets, sizes := []int{0, 16, 16 + 2*nn.BlockSize + 32}, []int{7, 2*nn.BlockSize + 21, 16}
	for _, clip := range []float32{0, 1, 1e9} {
		for _, averages := range []bool{true, false} {
			hyper := h.hyper(map[int]float32{
				nn.HyperRate: .1, nn.HyperBeta1: .9, nn.HyperMix1: .1, nn.HyperBeta2: .99, nn.HyperMix2: .01, nn.HyperEps: 1e-8,
				nn.HyperL2: .01, nn.HyperClip: clip, nn.HyperDecay: .02, nn.HyperAverage: .25,
			})
			w, g, m, v, a := h.normals(total), h.normals(total), h.normals(total), h.normals(total), h.normals(total)
			for i := range v {
				v[i] *= v[i]
			}
			// update performs one update with each rule and returns everything that may
			// have changed.
			update := func(whole bool) [][]float32 {
				p := &nn.Params{Values: h.upload(w...), Grads: h.upload(g...)}
				m, v, a := h.upload(m...), h.upload(v...), h.upload(a...)
				for i, at := range offsets {
					end := at + sizes[i]
					p.List = append(p.List, &nn.Param{Offset: at, Values: p.Values.Slice(at, end), Grads: p.Grads.Slice(at, end)})
				}
				average := a
				if !averages {
					average = nn.Buffer{}
				}
				norms := h.b.Alloc(p.Blocks())
				if whole {
					arena.AdamArena(p, nn.Gradients{Arena: p.Grads, Scale: 1}, m, v, average, norms, hyper)
					arena.SGDArena(p, nn.Gradients{Arena: p.Grads, Scale: .5, Clear: true}, average, norms, hyper)
				}
				for i, q := range p.List { // one after the other
					if whole {
						break
					}
					part := func(b nn.Buffer) nn.Buffer {
						if b.Len() == 0 {
							return b
						}
						return b.Slice(offsets[i], offsets[i]+sizes[i])
					}
					norms := norms.Slice(0, nn.Blocks(sizes[i]))
					h.b.SquaredNorm(norms, q.Grads, q.Values, hyper)
					h.b.Adam(q.Values, q.Grads, part(m), part(v), part(average), norms, hyper)
					h.b.Scale(q.Grads, .5)
					h.b.SquaredNorm(norms, q.Grads, q.Values, hyper)
					h.b.SGD(q.Values, q.Grads, part(average), norms, hyper)
					h.b.Zero(q.Grads)
				}
				return [][]float32{h.read(p.Values), h.read(p.Grads), h.read(m), h.read(v), h.read(a)}
			}
			want, got := update(false), update(true)
			for i, name := range []string{"values", "gradients", "m", "v", "average"} {
				require.Equal(h, want[i], got[i], "%s, clip %v, averages %v", name, clip, averages)
			}
			require.NotEqual(h, w, got[0])
		}
	}
}

// testFollow checks that Follow has the bits of Scale and Axpy.
func testFollow(h *harness) {
	arena, ok := h.b.(nn.ArenaUpdate)
	if !ok {
		h.Skip("the backend does not implement nn.ArenaUpdate")
	}
	const n, momentum = 301, float32(.1)
	value, mean := h.normals(n), h.normals(n)
	want, got, average := h.upload(value...), h.upload(value...), h.b.Alloc(n)
	h.b.Scale(want, 1-momentum)
	h.b.Axpy(want, momentum, h.upload(mean...))
	arena.Follow(got, average, h.upload(mean...), momentum)
	require.Equal(h, h.read(want), h.read(got))
	require.Equal(h, h.read(want), h.read(average))
	arena.Follow(got, nn.Buffer{}, h.upload(mean...), 1)
	require.Equal(h, mean, h.read(got))
}

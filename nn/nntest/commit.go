package nntest

import (
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
)

// An updated has the memory of a step that makes each kind of update once.
type updated struct {
	*harness
	pace   nn.Committer
	votes  nn.Buffer
	params *nn.Params
	slots  [3]nn.Buffer // of the arena
	single [2]nn.Buffer // updated alone, by Adam and by SGD
	moment [3]nn.Buffer // of single
	value  nn.Buffer    // a running statistic
	ones   nn.Buffer
	loss   nn.Buffer
	norms  nn.Buffer
}

const updatedLen = 40

func newUpdated(h *harness, pace nn.Committer) *updated {
	u := &updated{harness: h, pace: pace, votes: h.b.Alloc(nn.VoteLen), loss: h.b.Alloc(1), norms: h.b.Alloc(1), value: h.b.Alloc(updatedLen)}
	ones := make([]float32, updatedLen)
	for i := range ones {
		ones[i] = 1
	}
	u.ones = h.upload(ones...)
	u.params = &nn.Params{Values: h.b.Alloc(updatedLen), Grads: h.upload(ones...)}
	u.params.List = []*nn.Param{{Name: "w", Values: u.params.Values, Grads: u.params.Grads}}
	for i := range u.slots {
		u.slots[i], u.moment[i] = h.b.Alloc(updatedLen), h.b.Alloc(updatedLen)
	}
	for i := range u.single {
		u.single[i] = h.b.Alloc(updatedLen)
	}
	return u
}

// update makes each kind of update once.
func (u *updated) update() {
	b, hyper := u.b, u.pace.Hyper()
	b.Adam(u.single[0], u.ones, u.moment[0], u.moment[1], u.moment[2], nn.Buffer{}, hyper)
	b.SGD(u.single[1], u.ones, nn.Buffer{}, nn.Buffer{}, hyper)
	if a, ok := b.(nn.ArenaUpdate); ok {
		g := nn.Gradients{Arena: u.params.Grads, Scale: 1}
		a.AdamArena(u.params, g, u.slots[0], u.slots[1], u.slots[2], u.norms, hyper)
		a.SGDArena(u.params, g, nn.Buffer{}, u.norms, hyper)
		a.Follow(u.value, nn.Buffer{}, u.ones, .5)
	}
}

// step takes a step in which as many ranks as voted, of all, have voted like this one.
func (u *updated) step(voted, all int) {
	u.pace.Vote(u.votes)
	u.b.Scale(u.votes, float32(voted))
	u.pace.Commit(u.votes, all)
	u.update()
	u.pace.Tick(u.loss, 0)
}

// state returns everything that updates change.
func (u *updated) state() (all []float32) {
	for _, v := range []nn.Buffer{
		u.params.Values, u.slots[0], u.slots[1], u.slots[2], u.single[0], u.single[1], u.moment[0], u.moment[1], u.moment[2], u.value,
	} {
		all = append(all, u.read(v)...)
	}
	return all
}

// testCommit checks that all updates of a step change nothing unless all ranks have voted, and
// that a rank which has withheld one votes against all later steps.
func testCommit(h *harness) {
	pacer, ok := h.b.(nn.Pacer)
	if !ok {
		h.Skip("the backend does not implement nn.Pacer")
	}
	pace, ok := pacer.NewPace(nn.PaceConfig{Hyper: func(int) (row [nn.HyperLen]float32) {
		row[nn.HyperRate], row[nn.HyperMix1], row[nn.HyperMix2], row[nn.HyperEps], row[nn.HyperAverage] = .5, .5, .5, 1, .5
		return row
	}}).(nn.Committer)
	if !ok {
		h.Skip("its Pace does not implement nn.Committer")
	}
	u := newUpdated(h, pace)
	pace.Seek(5, 0)
	all, err := h.b.Record("all vote", func() error { u.step(3, 3); return nil })
	require.NoError(h, err)
	for range 3 {
		before := u.state()
		require.NoError(h, all())
		require.NotEqual(h, before, u.state())
	}
	votes := u.read(u.votes)
	_, ok = pace.Withheld(pace.Step())
	require.False(h, ok)

	before, missing := u.state(), pace.Step()
	some, err := h.b.Record("one is missing", func() error { u.step(2, 3); return nil })
	require.NoError(h, err)
	require.Equal(h, before, u.state())
	require.NotEqual(h, votes, u.read(u.votes), "votes of different steps")
	step, ok := pace.Withheld(pace.Step())
	require.True(h, ok)
	require.Equal(h, missing, step)
	_, ok = pace.Withheld(missing)
	require.False(h, ok)
	for _, replay := range []func() error{all, some, all} { // it votes against
		require.NoError(h, replay())
		require.Equal(h, before, u.state())
	}
	step, _ = pace.Withheld(pace.Step())
	require.Equal(h, missing, step, "the first")
	u.update() // in no step
	require.NotEqual(h, before, u.state())
}

package shm

import (
	"fmt"
	"math"
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/cpu"

	"github.com/ringtrain/ringtrain/collective/calibration"
)

// A search says whether the ranks of a host make trial calls when they form a group. It
// is searchAfter plus the number of experiments of earlier jobs, or one of the others.
type search uint64

const (
	noSearch search = iota
	fullSearch
	searchAfter
)

// choose writes the choices of the host, and whether the ranks then search for better
// ones. The lowest rank does so before it invites the others.
func (r *region) choose(c calibration.Choices, from calibration.Source, s search) {
	var words [calibration.Words]uint64
	c.Put(&words)
	for i, word := range words {
		atomic.StoreUint64(r.word(8*i), word)
	}
	atomic.StoreUint64(r.word(8*len(words)), uint64(from))
	atomic.StoreUint64(r.word(8*len(words)+8), uint64(s))
}

// chosen reads what choose has written.
func (r *region) chosen() (c calibration.Choices, from calibration.Source, s search, err error) {
	var words [calibration.Words]uint64
	for i := range words {
		words[i] = atomic.LoadUint64(r.word(8 * i))
	}
	c, err = calibration.Get(&words)
	if err != nil {
		err = fmt.Errorf("shm: the shared memory is corrupt: %w", err)
	}
	from = calibration.Source(atomic.LoadUint64(r.word(8 * len(words))))
	return c, from, search(atomic.LoadUint64(r.word(8*len(words) + 8))), err
}

// adopt makes the next calls use c. All ranks of the host do so between two calls.
func (t *Transport) adopt(c calibration.Choices) {
	t.choices = c
	t.most, t.prefetchMost, t.stringLeast = c.Small, c.PrefetchMost, c.StringLeast
	if c.StringLeast == 0 || !cpu.X86.HasERMS {
		t.stringLeast = math.MaxInt
	}
	if t.streamLeast = c.StreamLeast; c.StreamLeast == 0 {
		t.streamLeast = math.MaxInt
	}
	if t.distance.late == 0 { // there are such stores only where there are ticks
		t.streamLeast = math.MaxInt
	}
	t.copyLeast = min(t.stringLeast, t.streamLeast)
	t.sending.Lock()
	for i := range t.out {
		t.out[i].streamLeast = t.streamLeast
	}
	t.sending.Unlock()
	t.mem.stageIn(c.Chunk)
	t.mem.rotateMost = c.RotateMost
	t.polls, t.rounds, t.yields = c.Polls, c.Rounds, c.Yields
	if len(t.ranks) > runtime.NumCPU() {
		t.rounds, t.yields = 0, yieldsCrowded
		t.prefetchMost = 0 // a rank of the same core reads the lines in the core's own caches
	}
}

// first returns the choices with which the ranks of a host begin, and whether they then
// search. searches says that they can.
func first(p *calibration.Policy, ranks int, searches bool) (calibration.Choices, calibration.Source, search) {
	c := p.Start(ranks)
	switch {
	case p.Mode == calibration.Refine && searches:
		return p.Fix(c), calibration.FromDefault, fullSearch
	case p.Mode == calibration.Off:
		return p.Fix(c), calibration.FromDefault, noSearch
	}
	kept, ok := p.Store.Load(ranks)
	if !ok {
		kept.Choices = c
	}
	from := calibration.FromDefault
	if ok {
		from = calibration.FromStore
	}
	if searches && kept.Done < calibration.Experiments {
		return p.Fix(kept.Choices), from, searchAfter + search(kept.Done)
	}
	return p.Fix(kept.Choices), from, noSearch
}

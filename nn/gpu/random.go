package gpu

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nn"
)

// randomBytes is the size of a kernels.Random: seed, step, first and stride.
const randomBytes = 32

// draws is an nn.Stream in device memory.
type draws struct {
	at     cuda.Ptr
	stream nn.Stream
	set    bool
}

// draws returns the device address of s. If s is the Random of a Pace, that is the
// Pace's; otherwise the backend or the recording has its own. Of several such Paces it is the
// latest: an earlier one may have stopped at the step where the latest begins.
func (b *Backend) draws(s nn.Stream) cuda.Ptr {
	for _, p := range slices.Backward(b.paces) {
		if p.Random() == s {
			return p.random
		}
	}
	d := &b.random
	if r := b.recording; r != nil {
		d = &r.random
		if d.set && d.stream != s {
			b.fail(errors.New("Dropout draws from two nn.Streams in one recording, which can have only one; record them separately"))
			return 0
		}
		if d.at == 0 && b.failure == nil {
			var err error
			if d.at, err = b.lasting.next(randomBytes); err != nil {
				b.note("Dropout", err)
			}
		}
	}
	b.move(d, s)
	return d.at
}

// move queues a copy of s to d, unless d is s already.
func (b *Backend) move(d *draws, s nn.Stream) {
	if d.set && d.stream == s || b.failure != nil {
		return
	}
	words := []uint64{s.Seed, s.Step, uint64(s.First), uint64(s.Stride)}
	b.note("Dropout", b.staging.send(b.stream, d.at, cuda.BytesOf(words)))
	d.stream, d.set = s, true
}

// Redraw makes later repetitions of a recording draw their random numbers from s. Without
// it each repetition draws the same numbers as the first. If the recording has no
// Dropout, or draws from the Random of a Pace, which advances by itself, s has no effect.
func (b *Backend) Redraw(key string, s nn.Stream) error {
	r := b.recordings[key]
	if r == nil {
		return fmt.Errorf("gpu: there is no recording %q to redraw; Record it first", key)
	}
	if r.random.at != 0 {
		b.move(&r.random, s)
	}
	if b.failure != nil {
		return fmt.Errorf("gpu: recording %q: %w", key, b.failure)
	}
	return nil
}

package gpu

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringtrain/ringtrain/cuda"
)

// errReplaced is returned by a recording whose key was recorded anew.
var errReplaced = errors.New("it was recorded anew; use the function which that returned")

// errForgotten is returned by a recording after Forget.
var errForgotten = errors.New("Forget has ended it; record it again")

// A recording is what a function queued, and the graph of it.
type recording struct {
	key    string
	steps  []step
	graph  *cuda.Graph // nil if it is repeated step by step
	random draws
	pace   *pace // of its Ticks, or nil
	ticks  int
	over   error // why it cannot be repeated
}

// A step is some launches in a row, or something else.
type step struct {
	what     string
	launches *cuda.Batch
	fn       func(cuda.Stream) error
}

// add adds a launch.
func (r *recording) add(f cuda.Function, grid, block cuda.Dim, args []cuda.Arg) {
	if n := len(r.steps); n == 0 || r.steps[n-1].launches == nil {
		r.steps = append(r.steps, step{launches: new(cuda.Batch)})
	}
	r.steps[len(r.steps)-1].launches.Add(f, grid, block, 0, args...)
}

// run queues all steps.
func (r *recording) run(s cuda.Stream) error {
	for _, p := range r.steps {
		if p.launches != nil {
			if err := p.launches.Launch(s); err != nil {
				return err
			}
			continue
		}
		if err := p.fn(s); err != nil {
			return fmt.Errorf("%s: %w", p.what, err)
		}
	}
	return nil
}

func (r *recording) destroy() error {
	r.over = errReplaced
	g := r.graph
	r.graph, r.steps, r.pace = nil, nil, nil
	if g == nil {
		return nil
	}
	return g.Destroy()
}

// Record runs fn and captures what it queued as a graph. fn is called once; what
// cannot be repeated (Alloc, Copy, CopyInts, Read and Sync inside fn) is an error,
// which Sync returns too if work was left out for it. It does not nest. A key
// that was recorded before is recorded anew, and the function of before returns
// an error from then on.
func (b *Backend) Record(key string, fn func() error) (func() error, error) {
	switch {
	case b.closed:
		return nil, ErrClosed
	case b.recording != nil:
		return nil, fmt.Errorf("gpu: recording %q inside the recording %q; record one after the other", key, b.recording.key)
	}
	r := &recording{key: key}
	if err := b.trace(r, fn); err != nil {
		return nil, err
	}
	if err := b.capture(r); err != nil {
		return nil, fmt.Errorf("gpu: recording %q: %w", key, err)
	}
	if old := b.recordings[key]; old != nil {
		if err := errors.Join(b.wait(context.Background()), old.destroy()); err != nil {
			return nil, fmt.Errorf("gpu: the earlier recording %q: %w", key, err)
		}
	}
	b.recordings[key] = r
	return func() error { return b.repeat(r) }, nil
}

// Forget ends all recordings: what Record returned is an error from then on, and
// what was queued is done all the same. It waits for nothing. It comes before the
// end of what recordings use, such as the collective.Engine of a call that Queue
// was given, which in turn uses the backend's stream and ends before Close.
func (b *Backend) Forget() error {
	switch {
	case b.closed:
		return ErrClosed
	case b.recording != nil:
		return fmt.Errorf("gpu: recording %q: %w", b.recording.key, refuse("Forget"))
	}
	var err error
	for key, r := range b.recordings { // CUDA frees a graph that is under way when it is done
		if ended := r.destroy(); err == nil {
			err = ended
		}
		r.over = errForgotten
		delete(b.recordings, key)
	}
	if err != nil {
		return fmt.Errorf("gpu: ending the recordings: %w", err)
	}
	return nil
}

// trace runs fn and notes in r what it queues.
func (b *Backend) trace(r *recording, fn func() error) error {
	b.Join()
	b.recorded.rewind()
	b.changesAll()
	b.recording = r
	defer func() { b.recording = nil }()
	err := fn()
	b.Join() // a captured stream ends where it began
	if err != nil {
		return err
	}
	if b.failure != nil { // it stays: a part of the work was left out
		return fmt.Errorf("gpu: %w", b.failure)
	}
	return nil
}

// capture makes the graph.
func (b *Backend) capture(r *recording) error {
	if b.options.Plain || len(r.steps) == 0 { // an empty graph is none
		return nil
	}
	g, err := b.stream.Capture(func() error { return r.run(b.stream) })
	if err != nil {
		return fmt.Errorf("%w; Options.Plain repeats it without a graph", err)
	}
	if err := g.Upload(b.stream); err != nil {
		return errors.Join(err, g.Destroy())
	}
	r.graph = g
	return nil
}

// repeat queues the recording once more.
func (b *Backend) repeat(r *recording) error {
	var err error
	switch {
	case b.closed:
		return ErrClosed
	case b.recording != nil:
		return fmt.Errorf("gpu: recording %q is repeated inside the recording %q; call one after the other", r.key, b.recording.key)
	case b.failure != nil:
		err = b.failure
	case r.over != nil:
		err = r.over
	default:
		err = b.launchAgain(r)
	}
	if err != nil {
		return fmt.Errorf("gpu: recording %q: %w", r.key, err)
	}
	return nil
}

// launchAgain queues the recording, with the hyper-parameters of its steps.
func (b *Backend) launchAgain(r *recording) error {
	if r.pace != nil {
		if r.pace.ahead(r.ticks); b.failure != nil {
			return b.failure
		}
	}
	if b.Join(); b.failure != nil {
		return b.failure
	}
	run := r.run
	if r.graph != nil {
		run = r.graph.Launch
	}
	if err := run(b.stream); err != nil {
		return err
	}
	b.changesAll()
	b.calls.Repeats++
	if r.pace != nil {
		r.pace.ticked(r.ticks)
	}
	return nil
}

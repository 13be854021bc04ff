package gpu

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringtrain/ringtrain/cuda"
)

// errReplaced is the error of a recording whose key was recorded again.
var errReplaced = errors.New("its key was recorded again; use the function that the later Record returned")

// errForgotten is the error of a recording after Forget.
var errForgotten = errors.New("Forget has ended it; record it again")

// A recording holds what a function queued, and its graph.
type recording struct {
	key    string
	steps  []step
	graph  *cuda.Graph // nil to repeat it step by step
	random draws
	pace   *pace // of its Ticks, or nil
	ticks  int
	over   error // why it can no longer be repeated, or nil
}

// A step is a run of launches or, if launches is nil, the work that fn queues.
type step struct {
	what     string
	launches *cuda.Batch
	fn       func(cuda.Stream) error
}

// add appends a launch.
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

// Record calls fn once, captures what it queued as a graph, and returns a function that
// repeats it. Calling Alloc, Copy, CopyInts, Read or Sync inside fn is an error, because
// a graph cannot repeat them. Sync returns the error too if it made the backend skip
// work. Recordings do not nest. If the key was recorded before, the new recording
// replaces the old one, and the old function returns an error from then on.
func (b *Backend) Record(key string, fn func() error) (func() error, error) {
	switch {
	case b.closed:
		return nil, ErrClosed
	case b.recording != nil:
		return nil, fmt.Errorf("gpu: Record %q inside Record %q; make one recording after the other", key, b.recording.key)
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
			return nil, fmt.Errorf("gpu: the earlier recording %q: %w", key, errors.Join(err, r.destroy()))
		}
	}
	b.recordings[key] = r
	return func() error { return b.repeat(r) }, nil
}

// Forget ends all recordings: the functions that Record returned fail from then on. It
// does not wait, and queued repetitions still run. Call it before you close what
// recordings use, such as the collective.Engine of a call given to Queue. That engine
// uses the backend's stream, so close it before the backend.
func (b *Backend) Forget() error {
	switch {
	case b.closed:
		return ErrClosed
	case b.recording != nil:
		return fmt.Errorf("gpu: recording %q: %w", b.recording.key, refuse("Forget"))
	}
	var err error
	for key, r := range b.recordings { // CUDA frees a running graph when it has finished
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

// trace calls fn and collects in r what it queues.
func (b *Backend) trace(r *recording, fn func() error) error {
	b.Join()
	b.recorded.rewind()
	b.changesAll()
	b.recording = r
	defer func() { b.recording = nil }()
	err := fn()
	b.Join() // a capture must end on the stream where it began
	if err != nil {
		return err
	}
	if b.failure != nil { // Sync returns it, too: the backend has skipped work
		return fmt.Errorf("gpu: %w", b.failure)
	}
	return nil
}

// capture turns the steps of r into a graph.
func (b *Backend) capture(r *recording) error {
	if b.options.Plain || len(r.steps) == 0 { // nothing to capture
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
		return fmt.Errorf("gpu: recording %q cannot be repeated inside Record %q; call it before or after", r.key, b.recording.key)
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

// launchAgain queues the recording, after the hyper-parameters that its steps need.
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

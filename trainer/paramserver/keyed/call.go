package keyed

import (
	"context"
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer/store"
)

// A call is a request that waits for its answer.
type call struct {
	tag     uint32
	server  int // its rank
	request request
	into    *Copy         // receives the value of the answer; may be nil
	done    chan struct{} // closed when answer or err is set
	answer  answer        // without the value
	err     error
}

// all sends n requests and waits for all answers. If one fails, it sends no more, and
// returns the first error. answered, which may be nil, gets the answers that are not errors.
func (r *Remote) all(ctx context.Context, n int, send func(i int) (*call, error), answered func(answer)) error {
	calls := make([]*call, 0, n)
	var failed error
	for i := 0; i < n && failed == nil; i++ {
		var c *call
		if c, failed = send(i); failed == nil {
			calls = append(calls, c)
		}
	}
	for i := len(calls) - 1; i >= 0; i-- { // the first error is the last to be found
		if err := r.wait(ctx, calls[i]); err != nil {
			failed = err
		} else if answered != nil {
			answered(calls[i].answer)
		}
	}
	return failed
}

// send sends a request to a server. The value of the answer goes to into, until wait has
// returned.
func (r *Remote) send(ctx context.Context, server int, q request, into *Copy) (*call, error) {
	if err := r.acquire(ctx); err != nil {
		return nil, err
	}
	defer r.release()
	c, err := r.register(&call{server: server, request: request{op: q.op, key: q.key, version: q.version}, into: into, done: make(chan struct{})})
	if err != nil {
		return nil, err
	}
	r.out = q.append(r.out[:0])
	// If ctx ended during Send, it would break the group. The group's deadline limits Send.
	if err := r.messages.Send(context.WithoutCancel(ctx), server, c.tag, collective.Of(r.out)); err != nil {
		r.forget(c)
		return nil, fmt.Errorf("keyed: asking %s: %w", r.describe(server), err)
	}
	return c, nil
}

// wait waits for the answer of a call.
func (r *Remote) wait(ctx context.Context, c *call) error {
	select {
	case <-c.done:
	case <-ctx.Done():
		r.forget(c)
		return context.Cause(ctx)
	}
	if c.err != nil {
		return c.err
	}
	if err := c.answer.err(c.request); err != nil {
		return fmt.Errorf("keyed: %s asked %s: %w", r.describe(r.group.Rank()), r.describe(c.server), err)
	}
	return nil
}

// register chooses the tag of a call, and makes deliver find it.
func (r *Remote) register(c *call) (*call, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return nil, r.err
	}
	r.tag++ // no call waits for 2³² others
	c.tag = r.tag
	r.calls[c.tag] = c
	return c, nil
}

// forget gives up a call. Its answer, if it still comes, changes nothing.
func (r *Remote) forget(c *call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.calls, c.tag)
}

// deliver ends a call with its answer.
func (r *Remote) deliver(tag uint32, a answer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.calls[tag]
	if c == nil {
		return // forgotten
	}
	delete(r.calls, tag)
	if c.into != nil && a.status == statusValue {
		c.into.set(a.value, a.version)
	}
	a.value = store.Value{} // its memory is for the next message
	c.answer = a
	close(c.done)
}

// fail ends all calls, and those to come.
func (r *Remote) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
	for tag, c := range r.calls {
		delete(r.calls, tag)
		c.err = err
		close(c.done)
	}
}

// acquire waits for the turn to send.
func (r *Remote) acquire(ctx context.Context) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	select {
	case r.sending <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (r *Remote) release() { <-r.sending }

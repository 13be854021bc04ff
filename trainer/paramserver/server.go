package paramserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
)

// A server is a rank that answers the requests of the workers of Async.
type server struct {
	*post // of the newest group that this server knows of
	posts *posts
	*share
	arbiter *arbiter
	runs    []run       // of the whole share
	pushed  [][]float32 // by worker: the gradient of the next update, or nil
	form    header      // of the pushes: undivided
	before  nn.Buffer   // the values before a damped update
	out     []float32   // the answer in progress

	numbers               []int   // by worker: of the last request
	via                   []*post // by worker: by which that came
	finished, ended, left []bool  // by worker; left says that it has ended its messages, or is lost
}

func newServer(all *posts, first *post, version int) *server {
	x := all.exchange
	n := x.workers
	return &server{
		post: first, posts: all, share: x.share, arbiter: newArbiter(x.layout.Asynchronous.Policy, n, version, x.layout.Asynchronous.Limit),
		runs: x.whole[x.server()], pushed: make([][]float32, n), numbers: make([]int, n), via: make([]*post, n),
		finished: make([]bool, n), ended: make([]bool, n), left: make([]bool, n),
		out: make([]float32, headerLen+x.share.params.Values.Len()),
	}
}

// serve answers requests until all workers have ended their messages, each after the answers to
// its tagEnd.
func (s *server) serve(ctx context.Context) error {
	for slices.Contains(s.left, false) {
		l, err := s.await(ctx)
		switch {
		case errors.Is(err, errDue):
		case err != nil:
			if err := s.regroup(ctx, err); err != nil {
				return s.needed(err)
			}
		case l.tag == tagLeft:
			if l.from < len(s.left) {
				s.ended[l.from], s.left[l.from] = true, true
			}
		case l.from >= len(s.pushed):
			return fmt.Errorf("paramserver: rank %d sends a request and is no worker: run the same version on every machine", l.from)
		default:
			if err := s.handle(ctx, l); err != nil {
				return err
			}
		}
		if s.arbiter.ready(time.Now()) {
			if err := s.update(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// errDue ends the wait for a request because the next update is due.
var errDue = errors.New("the next update is due")

func (s *server) await(ctx context.Context) (letter, error) {
	if due := s.arbiter.due; !due.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, due, errDue)
		defer cancel()
	}
	return s.next(ctx, s.requests)
}

// needed returns err, or nil if the job survives losses and all workers have what they need from
// this server: then some have gone, and break the groups of others.
func (s *server) needed(err error) error {
	if s.posts.survives() && !slices.Contains(s.ended, false) {
		return nil
	}
	return err
}

// regroup continues in the next group after an error of the last, and forgets the workers that
// are lost.
func (s *server) regroup(ctx context.Context, cause error) error {
	p, err := s.posts.after(ctx, s.post, cause)
	if err != nil {
		return err
	}
	s.post = p
	for w := range s.left {
		if !slices.Contains(p.origin, w) {
			s.arbiter.leave(w)
			s.finished[w], s.ended[w], s.left[w] = true, true, true
		}
	}
	return nil
}

// handle handles a request. A request with the number of the last one repeats that in a new
// group.
func (s *server) handle(ctx context.Context, l letter) error {
	number := getHeader(l.body).number
	again := number == s.numbers[l.from]
	s.numbers[l.from], s.via[l.from] = number, s.post
	switch {
	case l.tag == tagPush && again && s.pushed[l.from] != nil:
		return nil // the next update answers it
	case l.tag == tagPush && again:
		return s.answerValues(ctx, l.from)
	}
	switch l.tag {
	case tagPush:
		return s.push(ctx, l)
	case tagState:
		return s.answer(ctx, l.from, tagState, s.arenas())
	case tagFinish:
		s.arbiter.leave(l.from)
		return s.meet(ctx, s.finished, l.from, tagFinish, s.arbiter.stale.words())
	}
	return s.meet(ctx, s.ended, l.from, tagEnd, nil)
}

// push gives a gradient to the arbiter.
func (s *server) push(ctx context.Context, l letter) error {
	h, body := getHeader(l.body), l.body[headerLen:]
	if n := s.params.Grads.Len(); len(body) != n {
		return fmt.Errorf("paramserver: worker %d sends a gradient of %d elements, and the share of this server has %d: run the same version on every machine", l.from, len(body), n)
	}
	used, err := s.arbiter.push(gradient{worker: l.from, version: h.version, rows: h.rows, loss: h.loss}, time.Now())
	if err != nil {
		return err
	}
	s.form = h
	if h.stop {
		s.arbiter.stop()
	}
	if !used {
		return s.answerValues(ctx, l.from)
	}
	s.pushed[l.from] = body
	return nil
}

// update makes the next update, and answers the workers whose gradients are in it.
func (s *server) update(ctx context.Context) error {
	u := s.arbiter.take()
	s.post.group.Mark(uint64(s.arbiter.version))
	if u.rows > 0 {
		if err := s.apply(u); err != nil {
			return err
		}
	}
	for _, g := range u.gradients {
		s.pushed[g.worker] = nil
		if err := s.answerValues(ctx, g.worker); err != nil {
			return err
		}
	}
	return nil
}

// apply changes the values.
func (s *server) apply(u update) error {
	var pushed [][]float32
	for _, g := range u.gradients {
		pushed = append(pushed, s.pushed[g.worker])
	}
	if err := s.fold(s.runs, pushed); err != nil {
		return err
	}
	if len(pushed) > 1 { // otherwise the worker has checked them
		if bad := trainer.NotFinite(s.params); bad != 0 {
			return fmt.Errorf("paramserver: the summed gradient of %s in update %d is not finite: lower the learn rate", s.params.List[bad-1].Name, s.arbiter.version)
		}
	}
	b := s.backend
	if !s.form.undivided {
		b.Scale(s.params.Grads, 1/float32(u.rows))
	}
	if u.factor == 1 {
		s.share.update(1)
		return nil
	}
	values := s.params.Values
	if s.before.Len() == 0 {
		s.before = b.Alloc(values.Len())
	}
	b.Extract(s.before, values, values.Len(), 0, values.Len())
	s.share.update(1)
	b.Scale(values, u.factor)
	b.Axpy(values, 1-u.factor, s.before)
	return nil
}

// arenas returns copies of the values and of all slots.
func (s *server) arenas() []float32 {
	n := s.params.Values.Len()
	all := make([]float32, n*(1+len(s.layout.Slots)))
	for i, slot := range append([]string{""}, s.layout.Slots...) {
		s.backend.Read(all[i*n:(i+1)*n], s.arena(slot))
	}
	return all
}

// answerValues sends the values.
func (s *server) answerValues(ctx context.Context, worker int) error {
	s.backend.Read(s.out[headerLen:], s.params.Values)
	s.header(worker).put(s.out)
	return s.reply(ctx, worker, tagPush, s.out)
}

func (s *server) header(worker int) header {
	a := s.arbiter
	return header{number: s.numbers[worker], version: a.version, rows: a.rows, loss: a.loss, stop: a.stopping && a.done()}
}

func (s *server) answer(ctx context.Context, worker int, tag uint32, body []float32) error {
	b := make([]float32, headerLen+len(body))
	s.header(worker).put(b)
	copy(b[headerLen:], body)
	return s.reply(ctx, worker, tag, b)
}

// reply sends an answer by the post by which the request came. If its group has broken, nobody
// waits there: the worker repeats the request in the next, and gets an answer then.
func (s *server) reply(ctx context.Context, worker int, tag uint32, b []float32) error {
	if s.via[worker] != s.post {
		return nil
	}
	err := s.send(ctx, worker, tag+tagAnswer, b)
	if err != nil && s.posts.survives() {
		return nil // await returns why the group broke
	}
	return err
}

// meet notes that a worker has sent a request that all workers send. It answers all of them
// when the last has, and again a worker that repeats it.
func (s *server) meet(ctx context.Context, here []bool, worker int, tag uint32, words []uint64) error {
	again := here[worker]
	here[worker] = true
	if slices.Contains(here, false) {
		return nil
	}
	body := make([]float32, 2*len(words))
	for i, x := range words {
		putWord(body[2*i:], x)
	}
	if again {
		return s.answer(ctx, worker, tag, body)
	}
	for k := range here { // this rank is last, because it may then end this server
		if err := s.answer(ctx, (s.self+1+k)%len(here), tag, body); err != nil {
			return err
		}
	}
	return nil
}

package paramserver

import (
	"context"
	"fmt"
	"slices"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
)

// A worker sends requests to servers, and waits for their answers.
type worker struct {
	*post    // of the newest group that this worker knows of
	posts    *posts
	exchange *exchange
	params   *nn.Params
	outs     [][]float32 // by server: the request in progress
	number   int         // of it
	versions []int       // by server: of the values here
	rows     int         // behind all gradients that the first server has applied
	loss     float64     // summed over them
}

func newWorker(all *posts, first *post, params *nn.Params, step int) *worker {
	x := all.exchange
	w := &worker{post: first, posts: all, exchange: x, params: params, versions: make([]int, len(x.servers))}
	for i, n := range x.lens {
		w.outs = append(w.outs, make([]float32, headerLen+n))
		w.versions[i] = step
	}
	return w
}

// Done implements trainer.Asynchronous.
func (w *worker) Done() int {
	done := w.versions[0]
	for _, v := range w.versions {
		done = min(done, v)
	}
	return done
}

// push sends the gradients of a step, and sets the values to the newest.
func (w *worker) push(ctx context.Context, p *nn.Params, s trainer.Step) (trainer.Report, error) {
	var report trainer.Report
	for i := range w.outs {
		w.outs[i] = w.outs[i][:headerLen+w.exchange.lens[i]]
		w.each(i, w.outs[i][headerLen:], p.Grads.Float32s(), func(mine, theirs []float32) { copy(theirs, mine) })
		if w.exchange.servers[i] != w.self {
			report.Sent += 4 * len(w.outs[i])
		}
	}
	answers, err := w.ask(ctx, tagPush, header{rows: s.Weight, loss: s.Loss, undivided: s.Undivided, stop: s.Stop}, func(i int) int { return w.exchange.lens[i] })
	if err != nil {
		return report, err
	}
	report.Plain, report.Stop = report.Sent, true
	for i, body := range answers {
		h := getHeader(body)
		w.take(i, h, body[headerLen:])
		report.Stop = report.Stop && h.stop
		if i == 0 {
			report.Weight = h.rows - w.rows
			report.Loss = (h.loss - w.loss) / float64(max(report.Weight, 1))
			w.rows, w.loss = h.rows, h.loss
		}
	}
	return report, nil
}

// take sets the values of a server's share.
func (w *worker) take(server int, h header, values []float32) {
	w.versions[server] = h.version
	w.each(server, values, w.params.Values.Float32s(), func(mine, theirs []float32) { copy(mine, theirs) })
}

// each calls f with every piece of a server's share, in an arena of the workers' layout and
// in one of the server's.
func (w *worker) each(server int, share, arena []float32, f func(mine, theirs []float32)) {
	w.exchange.pieces(server, share, arena, f)
}

// ask sends w.outs to all servers, with h completed as their headers, and returns the
// answers. elements returns how many follow the header in the answer of a server. If a worker
// is lost, ask repeats in the next group what has no answer.
func (w *worker) ask(ctx context.Context, tag uint32, h header, elements func(server int) int) ([][]float32, error) {
	w.number++
	h.number = w.number
	bodies := make([][]float32, len(w.exchange.servers))
	for {
		err := w.request(ctx, tag, h, bodies)
		if err == nil {
			err = w.collect(ctx, tag, bodies, elements)
		}
		if err == nil {
			return bodies, nil
		}
		p, err := w.posts.after(ctx, w.post, err)
		if err != nil {
			return nil, err
		}
		w.post = p
	}
}

// request sends a request to those servers of which bodies has no answer.
func (w *worker) request(ctx context.Context, tag uint32, h header, bodies [][]float32) error {
	for i, to := range w.exchange.servers {
		if bodies[i] != nil {
			continue
		}
		h.version = w.versions[i]
		h.put(w.outs[i])
		if err := w.send(ctx, to, tag, w.outs[i]); err != nil {
			return fmt.Errorf("sending to server %d: %w", to, err)
		}
	}
	return nil
}

// collect waits for the answers that bodies lacks.
func (w *worker) collect(ctx context.Context, tag uint32, bodies [][]float32, elements func(server int) int) error {
	for slices.ContainsFunc(bodies, func(b []float32) bool { return b == nil }) {
		l, err := w.next(ctx, w.answers)
		if err != nil {
			return err
		}
		i := l.from - w.exchange.servers[0] // servers are consecutive
		if i < 0 || i >= len(bodies) || bodies[i] != nil || l.tag != tag || len(l.body) != headerLen+elements(i) || getHeader(l.body).number != w.number {
			return fmt.Errorf("rank %d sends an answer that no server gives: run the same version on every machine", l.from)
		}
		bodies[i] = l.body
	}
	return nil
}

// askAll is ask for a request without elements.
func (w *worker) askAll(ctx context.Context, tag uint32, elements func(server int) int) ([][]float32, error) {
	for i := range w.outs {
		w.outs[i] = w.outs[i][:headerLen]
	}
	return w.ask(ctx, tag, header{}, elements)
}

// finish waits until all workers have finished. It returns what the first server has counted.
func (w *worker) finish(ctx context.Context) (Staleness, error) {
	answers, err := w.askAll(ctx, tagFinish, func(int) int { return 2 * staleWords })
	if err != nil {
		return Staleness{}, err
	}
	return decodeStaleness(answers[0][headerLen:]), nil
}

// pull sets the values, and slots, to those of the servers.
func (w *worker) pull(ctx context.Context, slots map[string][]float32) error {
	x := w.exchange
	answers, err := w.askAll(ctx, tagState, func(i int) int { return x.lens[i] * (1 + len(x.layout.Slots)) })
	if err != nil {
		return err
	}
	for _, slot := range x.layout.Slots {
		slots[slot] = make([]float32, w.params.Values.Len())
	}
	for i, body := range answers {
		n := x.lens[i]
		h, body := getHeader(body), body[headerLen:]
		w.take(i, h, body[:n])
		for k, slot := range x.layout.Slots {
			w.each(i, body[(k+1)*n:(k+2)*n], slots[slot], func(mine, theirs []float32) { copy(mine, theirs) })
		}
	}
	return nil
}

// end waits until no worker needs the servers any more.
func (w *worker) end(ctx context.Context) error {
	_, err := w.askAll(ctx, tagEnd, func(int) int { return 0 })
	return err
}

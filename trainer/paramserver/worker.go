package paramserver

import (
	"context"
	"fmt"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
)

// A worker sends requests to servers, and waits for their answers.
type worker struct {
	*post
	exchange *exchange
	params   *nn.Params
	outs     [][]float32 // by server: the request in progress
	number   int         // of it
	versions []int       // by server: of the values here
	rows     int         // behind all gradients that the first server has applied
	loss     float64     // summed over them
}

func newWorker(p *post, x *exchange, params *nn.Params, step int) *worker {
	w := &worker{post: p, exchange: x, params: params, versions: make([]int, len(x.servers))}
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
// answers. elements returns how many follow the header in the answer of a server.
func (w *worker) ask(ctx context.Context, tag uint32, h header, elements func(server int) int) ([][]float32, error) {
	servers := w.exchange.servers
	w.number++
	h.number = w.number
	for i, to := range servers {
		h.version = w.versions[i]
		h.put(w.outs[i])
		if err := w.send(ctx, to, tag, w.outs[i]); err != nil {
			return nil, fmt.Errorf("sending to server %d: %w", to, err)
		}
	}
	bodies := make([][]float32, len(servers))
	for range bodies {
		l, err := w.next(ctx, w.answers)
		if err != nil {
			return nil, err
		}
		i := l.from - servers[0] // servers are consecutive
		if i < 0 || i >= len(bodies) || bodies[i] != nil || l.tag != tag || len(l.body) != headerLen+elements(i) || getHeader(l.body).number != w.number {
			return nil, fmt.Errorf("rank %d sends an answer that no server gives: run the same version on every machine", l.from)
		}
		bodies[i] = l.body
	}
	return bodies, nil
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

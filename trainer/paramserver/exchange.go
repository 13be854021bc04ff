package paramserver

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// ranks are those of a job.
type ranks struct {
	group   *collective.Group // the workers are its first ranks
	workers int
	servers []int // ascending
}

// An updater is what a server updates its share with.
type updater struct {
	backend   nn.Backend
	optimizer optim.Optimizer
	keep      string // path of the file that keeps the share; "" for none
}

// An exchange moves arenas between workers and servers, step by step. All ranks of a group
// have one, and call the same methods in the same order.
type exchange struct {
	ranks
	layout  layout
	shares  [][]piece // of servers[i]
	lens    []int     // of their arenas
	whole   route     // of all parameters
	buckets []route

	params *nn.Params  // the names of parameters
	pulled []float32   // on a worker, what it has pulled, laid out like its arenas
	share  *share      // on a server, its share
	copies [][]float32 // on a server, an arena for every worker

	updating time.Duration // of the last step
}

// newExchange makes the exchange of a rank, and allocates the share of a server. The pieces
// of a cut parameter can be updated only if the optimizer is an optim.Recordable, and only
// together, because they share a norm.
func newExchange(r ranks, l layout, u updater) *exchange {
	_, cut := u.optimizer.(optim.Recordable)
	x := &exchange{ranks: r, layout: l, shares: split(l.Parameters, len(r.servers), cut && l.Asynchronous == nil)}
	x.whole, x.buckets = routeOf(l, x.shares, 0, len(l.Parameters)), routesOf(l, x.shares)
	for _, pieces := range x.shares {
		_, n := offsets(pieces)
		x.lens = append(x.lens, n)
	}
	if r.group.Rank() < r.workers {
		x.pulled = make([]float32, l.arena())
	}
	if i := x.server(); i >= 0 {
		x.share = newShare(u, l, x.shares[i])
		x.params = x.share.params
		most := r.workers
		if l.Asynchronous != nil {
			most = 1 // for load
		}
		for range most {
			x.copies = append(x.copies, make([]float32, x.lens[i]))
		}
	}
	return x
}

// server returns the index of this rank among the servers, -1 if it is none.
func (x *exchange) server() int { return slices.Index(x.servers, x.group.Rank()) }

// close closes the file of a server's share. x may be nil.
func (x *exchange) close() {
	if x != nil && x.share != nil && x.share.file != nil {
		_ = x.share.file.close() // nothing is buffered
	}
}

// everyone is for push and pull of all workers.
func everyone(int) bool { return true }

// first is for push of worker 0 alone.
func first(worker int) bool { return worker == 0 }

// push sends what lies on a route in the arenas of those workers for which from is true to the
// servers. They receive it in x.copies.
func (x *exchange) push(ctx context.Context, r route, arena []float32, from func(worker int) bool) error {
	call, err := x.pushing(r, arena, from)
	if err != nil {
		return err
	}
	return call.Call(ctx)
}

// pushing returns the call of push.
func (x *exchange) pushing(r route, arena []float32, from func(worker int) bool) (*collective.AllToAllW, error) {
	up, down := x.vectors(r, arena, func(worker int) []float32 { return x.copies[worker] }, from)
	return collective.NewAllToAllW(x.group, collective.Float32, down, up)
}

// pull sends an arena of every server to those workers for which to is true. They receive
// it in x.pulled.
func (x *exchange) pull(ctx context.Context, arena nn.Buffer, to func(worker int) bool) error {
	var held []float32
	if x.share != nil {
		if err := x.share.backend.Sync(ctx); err != nil {
			return err
		}
		held = arena.Float32s()
	}
	up, down := x.vectors(x.whole, x.pulled, func(int) []float32 { return held }, to)
	call, err := collective.NewAllToAllW(x.group, collective.Float32, up, down)
	if err != nil {
		return err
	}
	return call.Call(ctx)
}

// vectors returns what lies on a route, by rank, if the given workers take part: up, in an
// arena of this worker; down, in the arenas of this server for each worker.
func (x *exchange) vectors(r route, arena []float32, held func(worker int) []float32, with func(worker int) bool) (up, down [][]collective.Vector) {
	up, down = make([][]collective.Vector, x.group.Size()), make([][]collective.Vector, x.group.Size())
	if self := x.group.Rank(); self < x.workers && with(self) {
		for i, s := range x.servers {
			for _, part := range r[i] {
				up[s] = append(up[s], collective.Of(arena[part.offset:part.offset+part.len]))
			}
		}
	}
	for w := 0; x.share != nil && w < x.workers; w++ {
		if !with(w) {
			continue
		}
		for _, part := range r[x.server()] {
			down[w] = append(down[w], collective.Of(held(w)[part.at:part.at+part.len]))
		}
	}
	return up, down
}

// sent returns the bytes that this rank sends to others in a step.
func (x *exchange) sent() (bytes int) {
	for i, s := range x.servers {
		n := 4 * x.whole.elements(i)
		if s != x.group.Rank() {
			bytes += n
		} else {
			bytes += n * (x.workers - 1) // values
		}
	}
	return bytes
}

// values returns the values of a server's share.
func (x *exchange) values() (values nn.Buffer) {
	if x.share != nil {
		values = x.share.params.Values
	}
	return values
}

// load gives the servers values and slots to begin with after some steps. source returns an
// arena of the workers' layout by name, "" for the values; it is called on worker 0. No rank
// returns without an error before all have loaded.
func (x *exchange) load(ctx context.Context, steps int64, source func(slot string) ([]float32, error)) error {
	names := []string{""}
	if steps > 0 {
		names = append(names, x.layout.Slots...)
	}
	for _, name := range names {
		var arena []float32
		if x.group.Rank() == 0 {
			var err error
			if arena, err = source(name); err != nil {
				return err
			}
		}
		if err := x.push(ctx, x.whole, arena, first); err != nil {
			return fmt.Errorf("paramserver: sending parameters to the servers: %w", err)
		}
		if x.share != nil {
			x.share.backend.Copy(x.share.arena(name), x.copies[0])
		}
	}
	if x.share != nil {
		x.share.state.Step = int(steps)
		if err := x.share.keepFirst(); err != nil {
			return err
		}
	}
	if err := x.group.Barrier(ctx); err != nil {
		return fmt.Errorf("paramserver: waiting until all servers have the parameters: %w", err)
	}
	return nil
}

// slots gives workers the slots of all servers. It calls found with each; those of wanted then
// have it in x.pulled.
func (x *exchange) slots(ctx context.Context, wanted func(worker int) bool, found func(slot string)) error {
	for _, name := range x.layout.Slots {
		var arena nn.Buffer
		if x.share != nil {
			arena = x.share.arena(name)
		}
		if err := x.pull(ctx, arena, wanted); err != nil {
			return fmt.Errorf("paramserver: reading the optimizer's %q from the servers: %w", name, err)
		}
		found(name)
	}
	return nil
}

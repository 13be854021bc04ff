package paramserver

import (
	"context"
	"errors"
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
	layout layout
	shares [][]piece // of servers[i]
	lens   []int     // of their arenas

	arenas []float32 // on a worker, the arenas of all shares, one after another
	share  *share    // on a server, its share
	copies []float32 // on a server, an arena for every worker

	updating time.Duration // of the last step
}

// newExchange makes the exchange of a rank, and allocates the share of a server. The pieces
// of a cut parameter can be updated only if the optimizer is an optim.Recordable, and only
// together, because they share a norm.
func newExchange(r ranks, l layout, u updater) *exchange {
	_, cut := u.optimizer.(optim.Recordable)
	x := &exchange{ranks: r, layout: l, shares: split(l.Parameters, len(r.servers), cut && l.Asynchronous == nil)}
	total := 0
	for _, pieces := range x.shares {
		_, n := offsets(pieces)
		x.lens = append(x.lens, n)
		total += n
	}
	if r.group.Rank() < r.workers {
		x.arenas = make([]float32, total)
	}
	if i := slices.Index(r.servers, r.group.Rank()); i >= 0 {
		x.share = newShare(u, l, x.shares[i])
		most := r.workers
		if l.Asynchronous != nil {
			most = 1 // for load
		}
		x.copies = make([]float32, most*x.lens[i])
	}
	return x
}

// close closes the file of a server's share. x may be nil.
func (x *exchange) close() {
	if x != nil && x.share != nil && x.share.file != nil {
		_ = x.share.file.close() // nothing is buffered
	}
}

// pack copies an arena of the workers' layout to x.arenas.
func (x *exchange) pack(arena []float32) {
	x.each(func(mine, theirs []float32) { copy(theirs, mine) }, arena)
}

// unpack copies x.arenas to an arena of the workers' layout.
func (x *exchange) unpack(arena []float32) {
	x.each(func(mine, theirs []float32) { copy(mine, theirs) }, arena)
}

// each calls f with every piece, in an arena of the workers' layout and in x.arenas.
func (x *exchange) each(f func(mine, theirs []float32), arena []float32) {
	base := 0
	for i, pieces := range x.shares {
		at, _ := offsets(pieces)
		for k, p := range pieces {
			from := x.layout.Parameters[p.param].Offset + p.lo
			f(arena[from:from+p.len()], x.arenas[base+at[k]:base+at[k]+p.len()])
		}
		base += x.lens[i]
	}
}

// everyone is for push and pull of all workers.
func everyone(int) bool { return true }

// first is for push of worker 0 alone.
func first(worker int) bool { return worker == 0 }

// push sends the arenas of those workers for which from is true to the servers, which
// receive them in x.copies, one after another.
func (x *exchange) push(ctx context.Context, from func(worker int) bool) error {
	up, down := x.counts(from)
	return x.move(ctx, x.copies[:sum(down)], x.arenas[:sum(up)], up, down)
}

// pull sends an arena of every server to those workers for which to is true. They receive
// it in x.arenas. It overwrites x.copies.
func (x *exchange) pull(ctx context.Context, arena nn.Buffer, to func(worker int) bool) error {
	up, down := x.counts(to)
	src := x.copies[:sum(down)]
	for lo := 0; lo < len(src); lo += arena.Len() {
		x.share.backend.Read(src[lo:lo+arena.Len()], arena)
	}
	return x.move(ctx, x.arenas[:sum(up)], src, down, up)
}

func (x *exchange) move(ctx context.Context, dst, src []float32, sends, recvs []int) error {
	return x.group.AllToAllV(ctx, collective.Of(dst), collective.Of(src), sends, recvs)
}

// counts returns the number of elements that travel between this rank and each other, if
// the given workers take part: up, of this worker's arenas, and down, of this server's
// copies.
func (x *exchange) counts(with func(worker int) bool) (up, down []int) {
	up, down = make([]int, x.group.Size()), make([]int, x.group.Size())
	if self := x.group.Rank(); self < x.workers && with(self) {
		for i, s := range x.servers {
			up[s] = x.lens[i]
		}
	}
	if x.share != nil {
		for w := range x.workers {
			if with(w) {
				down[w] = x.share.params.Values.Len()
			}
		}
	}
	return up, down
}

// sent returns the bytes that this rank sends to others in a step.
func (x *exchange) sent() int {
	up, down := x.counts(everyone)
	self := x.group.Rank()
	return 4 * (sum(up) - up[self] + sum(down) - down[self])
}

func sum(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
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
		if x.group.Rank() == 0 {
			arena, err := source(name)
			if err != nil {
				return err
			}
			x.pack(arena)
		}
		if err := x.push(ctx, first); err != nil {
			return fmt.Errorf("paramserver: sending parameters to the servers: %w", err)
		}
		if x.share != nil {
			to := x.share.arena(name)
			x.share.backend.Copy(to, x.copies[:to.Len()])
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

// slots gives workers the slots of all servers. Those of wanted call found with each, in an
// arena like x.arenas.
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

// A notFiniteError is the error of a step in which the sum of all gradients is not finite.
type notFiniteError struct {
	step      int64
	parameter string
}

// Error names the parameter.
func (e *notFiniteError) Error() string {
	return fmt.Sprintf("paramserver: the summed gradient of %s in step %d is not finite: lower the learn rate", e.parameter, e.step+1)
}

// step makes a step. The workers' gradients are in x.arenas, and their new values are there
// afterwards. If it fails before the update on some server, no share has changed.
func (x *exchange) step(ctx context.Context, c command) error {
	if !c.rows {
		if x.share != nil {
			x.share.state.Step++
			if err := x.share.keepStep(); err != nil {
				return err
			}
		}
		if err := x.group.Barrier(ctx); err != nil { // no worker counts the step before all servers have
			return fmt.Errorf("paramserver: counting step %d: %w", c.step+1, err)
		}
		return nil
	}
	if err := x.push(ctx, everyone); err != nil {
		return fmt.Errorf("paramserver: pushing the gradients of step %d: %w", c.step+1, err)
	}
	if err := x.combine(ctx, c); err != nil {
		return err
	}
	if x.share != nil {
		begin := time.Now()
		x.share.update()
		if err := x.share.keepStep(); err != nil { // before a worker has the values
			return err
		}
		x.updating = time.Since(begin)
	}
	if err := x.pull(ctx, x.values(), everyone); err != nil {
		return fmt.Errorf("paramserver: pulling the values of step %d: %w", c.step+1, err)
	}
	return nil
}

// combine prepares the update: servers add gradients, agree that the sums are finite,
// divide them, and tell each other the norms of parameters that are cut.
func (x *exchange) combine(ctx context.Context, c command) error {
	bad := []int64{0}
	if x.share != nil {
		if err := x.share.fold(slices.Collect(slices.Chunk(x.copies, x.share.params.Grads.Len()))); err != nil {
			return err
		}
		if x.workers > 1 { // otherwise the worker has checked them
			bad[0] = x.share.notFinite()
		}
	}
	all := make([]int64, x.group.Size())
	if err := collective.AllGather(ctx, x.group, all, bad); err != nil {
		return fmt.Errorf("paramserver: checking the sums of step %d: %w", c.step+1, err)
	}
	if b := slices.Max(all); b != 0 {
		if b < 0 || b > int64(len(x.layout.Parameters)) {
			return errors.New("paramserver: a server names a parameter that does not exist: run the same version on every machine")
		}
		return &notFiniteError{c.step, x.layout.Parameters[b-1].Name}
	}
	if x.share != nil && c.number > 0 {
		x.share.backend.Scale(x.share.params.Grads, 1/float32(c.number))
	}
	return x.exchangeNorms(ctx, c)
}

// exchangeNorms gives every server the squared norms of all blocks of parameters that are
// cut. Without one it does nothing, on all ranks.
func (x *exchange) exchangeNorms(ctx context.Context, c command) error {
	counts := make([]int, x.group.Size())
	for i, s := range x.servers {
		counts[s] = blocksOf(x.layout, x.shares[i])
	}
	all := make([]float32, sum(counts))
	if len(all) == 0 {
		return nil
	}
	var own []float32
	if x.share != nil {
		own = x.share.blockNorms()
	}
	if err := x.group.AllGatherV(ctx, collective.Of(all), collective.Of(own), counts); err != nil {
		return fmt.Errorf("paramserver: exchanging the norms of step %d: %w", c.step+1, err)
	}
	if x.share == nil {
		return nil
	}
	for i, s := range x.servers {
		x.share.setBlockNorms(x.shares[i], all[:counts[s]])
		all = all[counts[s]:]
	}
	return nil
}

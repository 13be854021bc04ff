package paramserver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// lossy are the ranks of a job in which some die. They are in this process.
type lossy struct {
	t       *testing.T
	members []collective.Member // of the first group

	mu         sync.Mutex
	epoch      uint64
	alive      []int                  // ranks of the first group
	transports []collective.Transport // by rank of the first group; of the newest
	// disconnect is called in place of Async.Disconnect. It may be nil.
	disconnect func(ctx context.Context, w *lossyRank) error
	groups     []*collective.Group
	here       []int         // that wait for the next group
	formed     chan struct{} // closed when it is there
}

func newLossy(t *testing.T, n int) *lossy {
	views, _ := collective.Local(n)
	m := &lossy{t: t, members: views[0].Members, alive: span(0, n), transports: make([]collective.Transport, n), groups: make([]*collective.Group, n)}
	m.form()
	return m
}

// form makes the group of those that are alive. The caller holds mu.
func (m *lossy) form() {
	m.epoch++
	views, transports := collective.Local(len(m.alive))
	var members []collective.Member
	for _, rank := range m.alive {
		members = append(members, m.members[rank])
	}
	for i, rank := range m.alive {
		views[i].Epoch, views[i].Members = m.epoch, members
		m.transports[rank] = transports[i]
		g := collective.NewGroup(views[i], collective.OverTransport(views[i], transports[i]), collective.Options{})
		m.t.Cleanup(func() { assert.NoError(m.t, g.Close()) })
		m.groups[rank] = g
	}
	if m.formed != nil {
		close(m.formed)
	}
	m.here, m.formed = nil, make(chan struct{})
}

// kill ends a rank. The others lose their connections to it.
func (m *lossy) kill(rank int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := slices.Index(m.alive, rank)
	m.transports[rank].Abort(&collective.RankError{Rank: at, Phase: "receive", Err: collective.ErrLost})
	m.forget(rank)
}

// leave ends a rank that needs the others no more.
func (m *lossy) leave(rank int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = m.groups[rank].Close()
	m.forget(rank)
}

func (m *lossy) forget(rank int) {
	m.alive = slices.DeleteFunc(slices.Clone(m.alive), func(r int) bool { return r == rank })
	m.meet()
}

// meet forms the next group if all that are alive wait for it.
func (m *lossy) meet() {
	if len(m.here) > 0 && !slices.ContainsFunc(m.alive, func(rank int) bool { return !slices.Contains(m.here, rank) }) {
		m.form()
	}
}

// regroup returns Servers.Regroup of a rank.
func (m *lossy) regroup(rank int) func(ctx context.Context, cause error) (*collective.Group, error) {
	return func(ctx context.Context, _ error) (*collective.Group, error) {
		m.mu.Lock()
		m.here = append(m.here, rank)
		formed := m.formed
		m.meet()
		m.mu.Unlock()
		select {
		case <-formed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.groups[rank], nil
	}
}

// A loss is what Servers.Lost has heard.
type loss struct{ rank, left int }

// A lossyRank is one rank of lossy: a worker that a test steps by hand, or a server.
type lossyRank struct {
	*lossy
	rank, workers int
	strategy      *Async
	params        *nn.Params

	steps  int // of this rank that have returned
	done   int // of all, in the end
	losses []loss
	err    error
}

// train takes steps until the training has as many as limit, or die says after which this rank
// dies.
func (w *lossyRank) train(ctx context.Context, limit int, die func(w *lossyRank) bool) error {
	workers, err := w.groups[w.rank].Sub(ctx, 0, w.rank)
	if err != nil {
		return err
	}
	defer workers.Close()
	if _, err := w.strategy.Start(ctx, trainer.Start{Group: workers, Params: w.params, Steps: limit}); err != nil {
		return err
	}
	for w.strategy.Done() < limit {
		if die(w) {
			w.kill(w.rank)
			return nil
		}
		for i := range w.params.Grads.Float32s() {
			w.params.Grads.Float32s()[i] = float32(w.rank + 1)
		}
		if _, err := w.strategy.Step(ctx, w.params, trainer.Step{Index: w.strategy.Done(), Weight: 1, Loss: 1}); err != nil {
			return err
		}
		w.steps++
	}
	if err := w.strategy.Finish(ctx, w.params); err != nil {
		return err
	}
	if die(w) {
		w.kill(w.rank)
		return nil
	}
	if _, err := w.strategy.State(ctx, w.rank == 0); err != nil {
		return err
	}
	w.done = w.strategy.Done()
	if w.disconnect != nil {
		return w.disconnect(ctx, w)
	}
	return w.strategy.Disconnect(ctx)
}

// trainLossy trains with workers that may die, and returns all ranks.
func trainLossy(t *testing.T, workers, servers, limit int, p Policy, die func(w *lossyRank) bool) []*lossyRank {
	return newLossy(t, workers+servers).train(t, workers, servers, limit, p, die)
}

func (m *lossy) train(t *testing.T, workers, servers, limit int, p Policy, die func(w *lossyRank) bool) []*lossyRank {
	ranks := make([]*lossyRank, workers+servers)
	each(ranks, func(rank int) {
		ctx, b := deadline(t), cpu.New(cpu.Options{})
		defer b.Close()
		w := &lossyRank{lossy: m, rank: rank, workers: workers}
		ranks[rank] = w
		g := m.groups[rank]
		if rank >= workers {
			peers, err := g.Sub(ctx, 1, rank)
			if assert.NoError(t, err) {
				defer peers.Close()
			}
			w.err = ServeKept(ctx, g, workers, Keeper{Backend: b, Optimizer: optim.DefaultSGD(.001), Regroup: m.regroup(rank)})
			m.leave(rank)
			return
		}
		model, err := nn.NewClassifier(b, models.ReluReluSoftmax(8, 0), []int{4}, 3, uint64(rank+1))
		require.NoError(t, err)
		w.params = model.Params()
		w.strategy = NewAsync(b, optim.DefaultSGD(.001), Servers{Group: g, Regroup: m.regroup(rank), Lost: func(e *collective.RankError, left int) {
			w.losses = append(w.losses, loss{e.Rank, left})
		}}, p)
		w.err = w.train(ctx, limit, die)
		assert.NoError(t, w.strategy.Close())
		m.leave(rank)
	})
	return ranks
}

// Training continues without the workers that are lost, whenever that is, and ends with the usual
// number of updates and the same values on all that are left. A gradient is applied once.
func TestSurvivors(t *testing.T) {
	const workers, limit = 4, 40
	for _, p := range []Policy{{}, {Quorum: 3, Bounded: true}, {Quorum: Everyone, Bounded: true}, {Bounded: true, MaxStaleness: 1, Damp: true}} {
		for servers := 1; servers <= 2; servers++ {
			for _, dying := range [][]int{{2}, {1, 3}, {1, 2, 3}} {
				t.Run(fmt.Sprintf("%v, %d servers, %v", p, servers, dying), func(t *testing.T) {
					var after [workers]int
					for _, rank := range dying {
						after[rank] = rand.N(limit / workers)
					}
					checkSurvivors(t, dying, servers, limit, trainLossy(t, workers, servers, limit, p, func(w *lossyRank) bool {
						return slices.Contains(dying, w.rank) && (w.steps >= after[w.rank] || w.strategy.Done() >= limit)
					}))
				})
			}
		}
	}
}

func checkSurvivors(t *testing.T, dying []int, servers, limit int, all []*lossyRank) {
	workers, sent := len(all)-servers, 0
	var stale Staleness
	for _, w := range all {
		require.NoError(t, w.err, "rank %d", w.rank)
		if w.rank >= workers {
			continue
		}
		sent += w.steps
		if slices.Contains(dying, w.rank) {
			continue
		}
		require.Equal(t, all[0].params.Values.Float32s(), w.params.Values.Float32s(), "rank %d", w.rank)
		require.Equal(t, limit, w.done)
		stale = w.strategy.Stale()
		var ranks []int
		for _, l := range w.losses {
			ranks = append(ranks, l.rank)
		}
		require.ElementsMatch(t, dying, ranks, "rank %d hears of each loss once", w.rank)
		require.Equal(t, workers-len(dying), w.losses[len(dying)-1].left)
	}
	require.Equal(t, sent, stale.Total(), "each gradient counts once")
}

// A worker that dies while others wait for it in the middle of a step, or at the end, holds up
// nobody.
func TestSurvivorsAtTheEnd(t *testing.T) {
	const workers, limit = 3, 12
	for servers := 1; servers <= 2; servers++ {
		all := trainLossy(t, workers, servers, limit, Policy{}, func(w *lossyRank) bool { return w.rank == 1 && w.strategy.Done() >= limit })
		checkSurvivors(t, []int{1}, servers, limit, all)
	}
}

// A worker that dies while it disconnects harms nobody: the others have their answers, or
// get them.
func TestSurvivorsDisconnect(t *testing.T) {
	const workers, limit, victim = 3, 12, 1
	for name, die := range map[string]func(ctx context.Context, w *lossyRank) error{
		"after all answers": func(ctx context.Context, w *lossyRank) error { return w.strategy.end(ctx) },
		"after one answer": func(ctx context.Context, w *lossyRank) error {
			out := make([]float32, headerLen)
			header{number: w.strategy.number + 1}.put(out)
			if err := w.strategy.send(ctx, workers, tagEnd, out); err != nil {
				return err
			}
			_, err := w.strategy.next(ctx, w.strategy.answers)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := newLossy(t, workers+2)
			all.disconnect = func(ctx context.Context, w *lossyRank) error {
				if w.rank != victim {
					return w.strategy.Disconnect(ctx)
				}
				defer w.kill(victim)
				return die(ctx, w)
			}
			for _, w := range all.train(t, workers, 2, limit, Policy{}, func(*lossyRank) bool { return false }) {
				require.NoError(t, w.err, "rank %d", w.rank)
			}
		})
	}
}

// Without worker 0 or a server there is no training: the others name it.
func TestNoSurvivors(t *testing.T) {
	const workers = 3
	for _, culprit := range []int{0, workers + 1} {
		all := trainLossy(t, workers, 2, 1_000_000, Policy{}, func(w *lossyRank) bool {
			if w.rank != 0 || w.steps != 5 {
				return false
			}
			if culprit != 0 {
				w.kill(culprit)
			}
			return culprit == 0
		})
		for _, w := range all {
			var lost *collective.RankError
			if w.rank != culprit {
				require.ErrorAs(t, w.err, &lost, "rank %d", w.rank)
				require.Equal(t, culprit, lost.Rank)
				require.ErrorIs(t, w.err, collective.ErrLost)
			}
		}
	}
}

// An error of one worker's own ends the training of all.
func TestSurvivorsFail(t *testing.T) {
	why := errors.New("the disk of this worker is full")
	all := trainLossy(t, 3, 1, 1_000_000, Policy{}, func(w *lossyRank) bool {
		if w.rank == 1 && w.steps == 5 {
			w.groups[1].Abort(why)
		}
		return false
	})
	for _, w := range all {
		var lost *collective.RankError
		require.ErrorAs(t, w.err, &lost, "rank %d", w.rank)
		require.Equal(t, 1, lost.Rank)
		require.ErrorContains(t, w.err, why.Error())
	}
}

package paramserver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/secret"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// One worker gets the bits of AllReduce, with every reduction.
func TestPeersEqualAllReduceAlone(t *testing.T) {
	for quorum := range 2 {
		for _, reduce := range []trainer.Reduce{trainer.ReduceMean, trainer.ReduceSum} {
			j := job{workers: 1, peers: true, quorum: quorum, optimizer: optim.DefaultAdam(), steps: 8, change: func(_ int, c *trainer.Config) { c.Reduce = reduce }}
			j.equal(t)
		}
	}
}

// owners returns how many workers own parameters.
func owners(workers int) int { return min(workers, parameters) }

// parameters is the number of those of the model of job.
const parameters = 6

// All workers take all steps and end with the same values, also if some own nothing. Every
// owner counts the gradients of all, and rank 0 reports their rows.
func TestPeersEnd(t *testing.T) {
	const steps = 10 // fewer than an epoch has
	for _, workers := range []int{2, 3, 8} {
		for quorum := range 4 {
			t.Run(fmt.Sprintf("%d workers, quorum %d", workers, quorum), func(t *testing.T) {
				out := job{workers: workers, peers: true, quorum: quorum, optimizer: optim.DefaultAdam(), steps: steps}.run(t)
				for rank, got := range out {
					require.NoError(t, got.err, "rank %d", rank)
					require.Equal(t, out[0].values, got.values, "rank %d", rank)
					require.Equal(t, steps, got.result.Steps)
					require.Equal(t, out[0].stale, got.stale)
				}
				stale := out[0].stale
				require.Equal(t, steps*workers*owners(workers), stale.Total())
				require.GreaterOrEqual(t, stale.Applied+stale.Unused, steps*owners(workers), "its own are never late")
				require.Zero(t, stale.Damped)
				require.Equal(t, stale.Dropped, stale.Total()-stale.Histogram[0], "all that are stale, and no other")
				require.Equal(t, 3*steps*workers, out[0].result.Samples)
				require.Len(t, out[0].state.Slots["m"], len(out[0].values))
				require.Equal(t, steps, out[0].state.Step)
			})
		}
	}
}

// The transport does not matter, nor does encryption.
func TestPeersOverEveryTransport(t *testing.T) {
	key := secret.New()
	for name, c := range map[string]cluster.Config{
		"tcp": {Transport: cluster.TransportTCP}, "auto": {Transport: cluster.TransportAuto}, "key": {Transport: cluster.TransportTCP, Key: &key},
	} {
		t.Run(name, func(t *testing.T) {
			out := job{connect: clustered(c), workers: 3, peers: true, quorum: 2, optimizer: optim.DefaultAdam(), steps: 20}.run(t)
			for rank, got := range out {
				require.NoError(t, got.err, "rank %d", rank)
				require.Equal(t, out[0].values, got.values, "rank %d", rank)
			}
		})
	}
}

// A run resumes with another number of workers, and to and from AllReduce. A single
// worker gets the bits of a run that never stopped.
func TestPeersResume(t *testing.T) {
	usual := job{workers: 1, optimizer: optim.DefaultAdam(), steps: 6}
	want := usual.reference(t)
	for _, c := range []struct {
		before, after int // workers; 0: one, with AllReduce
		equal         bool
	}{{1, 1, true}, {1, 0, true}, {0, 1, true}, {2, 3, false}, {3, 1, false}} {
		of := func(workers, steps int, from *outcome) []outcome {
			j := usual
			j.workers, j.peers, j.steps = max(workers, 1), workers > 0, steps
			j.change = func(rank int, c *trainer.Config) {
				if rank == 0 && from != nil {
					c.From = from.state
					copy(c.Task.Params().Values.Float32s(), from.values)
				}
			}
			return j.run(t)
		}
		first := of(c.before, 3, nil)[0]
		require.NoError(t, first.err)
		for rank, got := range of(c.after, 6, &first) {
			require.NoError(t, got.err, "%d, then %d: rank %d", c.before, c.after, rank)
			require.Equal(t, 6, got.result.Steps)
			if c.equal {
				require.Equal(t, want.values, got.values, "%d, then %d", c.before, c.after)
				require.Equal(t, want.state, got.state)
			}
		}
	}
}

// peerSeats are workers that a test steps by hand, in one goroutine.
type peerSeats struct {
	*testing.T
	ctx context.Context
	all []*peerSeat
}

type peerSeat struct {
	group    *collective.Group
	params   *nn.Params
	strategy *Peers
}

// seatPeers starts workers whose values are equal.
func seatPeers(t *testing.T, workers, quorum int) *peerSeats {
	s := &peerSeats{T: t, ctx: deadline(t), all: make([]*peerSeat, workers)}
	groups := local(t, workers, 0)
	each(groups, func(rank int) {
		b := cpu.New(cpu.Options{})
		m, err := nn.NewClassifier(b, models.ReluReluSoftmax(8, 0), []int{4}, 3, uint64(rank+1))
		assert.NoError(t, err)
		p := NewPeers(b, optim.DefaultAdam(), quorum)
		t.Cleanup(func() { assert.NoError(t, errors.Join(p.Close(), b.Close())) })
		_, err = p.Start(s.ctx, trainer.Start{Group: groups[rank], Params: m.Params()})
		assert.NoError(t, err)
		s.all[rank] = &peerSeat{group: groups[rank], params: m.Params(), strategy: p}
	})
	require.False(t, t.Failed())
	return s
}

// stepOf takes a step of a worker in which every gradient is 1.
func (s *peerSeats) stepOf(rank int, of trainer.Step) trainer.Report {
	s.Helper()
	w := s.all[rank]
	for i := range w.params.Grads.Float32s() {
		w.params.Grads.Float32s()[i] = 1
	}
	of.Index, of.Weight, of.Loss = w.strategy.steps, 1, float64(rank)
	report, err := w.strategy.Step(s.ctx, w.params, of)
	require.NoError(s, err)
	return report
}

func (s *peerSeats) step(rank int) trainer.Report {
	s.Helper()
	return s.stepOf(rank, trainer.Step{})
}

// until waits until something has arrived at a worker.
func (s *peerSeats) until(rank int, ready func(m *peerMail) bool) {
	s.Helper()
	m := s.all[rank].strategy.mail
	require.NoError(s, m.await(s.ctx, func() bool { return ready(m) }))
}

// gradients waits until a worker has so many for its next update.
func (s *peerSeats) gradients(rank, n int) {
	s.Helper()
	s.until(rank, func(m *peerMail) bool { return m.owner.count == n })
}

func (s *peerSeats) values(rank int) []float32 {
	return slices.Clone(s.all[rank].params.Values.Float32s())
}

// An owner updates after a step if there is a quorum, others use the values from their next
// step on, and a gradient on values of another version is dropped.
func TestPeersVersions(t *testing.T) {
	s := seatPeers(t, 2, 2)
	one, two := s.all[0].strategy, s.all[1].strategy
	start := s.values(0)
	s.step(0)
	s.gradients(1, 1)
	require.Equal(t, start, s.values(0), "one gradient is no quorum")

	s.step(1)
	require.Equal(t, []int{0, 1}, two.versions, "two are")
	s.gradients(0, 2)
	s.until(0, func(m *peerMail) bool { return m.parked[1].version == 1 })
	require.Equal(t, start, s.values(0), "the worker is in a step")
	require.Equal(t, []int{0, 0}, one.versions)

	s.step(0) // on the old values of worker 1, which drops it
	require.Equal(t, []int{1, 1}, one.versions)
	s.until(1, func(m *peerMail) bool { return m.owner.stale.Dropped == 1 && m.parked[0].version == 1 })
	require.Equal(t, []int{2, 1}, two.mail.owner.stale.Histogram[:2])
	s.gradients(1, 0)
	for i, q := range one.mail.exchange.shares {
		for _, part := range q { // which both have after one update
			at := s.all[0].params.List[part.param].Offset
			require.NotEqual(t, start[at], s.values(0)[at])
			if i == 1 {
				require.Equal(t, s.values(1)[at], s.values(0)[at])
			}
		}
	}
}

// A quorum counts gradients, not workers.
func TestPeersQuorumOfOneWorker(t *testing.T) {
	s := seatPeers(t, 2, 3)
	for range 2 {
		s.step(0)
		require.Equal(t, []int{0, 0}, s.all[0].strategy.versions)
	}
	s.step(0)
	require.Equal(t, []int{1, 0}, s.all[0].strategy.versions)
}

// A Report covers the rows and the loss of all gradients that have come, once.
func TestPeersReport(t *testing.T) {
	s := seatPeers(t, 3, 100)
	s.step(2)
	s.step(2)
	s.step(1)
	s.gradients(0, 3)
	got := s.step(0)
	require.Equal(t, 4, got.Weight)
	require.InDelta(t, (2+2+1+0)/4., got.Loss, 1e-9)
	require.Equal(t, 1, s.step(0).Weight)
	require.False(t, got.Stop)
}

// A worker that has taken its last step continues to update its share until all have, and then
// all have the same values. Nobody needs another worker for that: a State is answered while a
// worker waits, or computes.
func TestPeersLastStep(t *testing.T) {
	const more = 5
	s := seatPeers(t, 2, 1)
	state, err := s.all[1].strategy.State(s.ctx, true)
	require.NoError(t, err, "worker 0 computes")
	require.Zero(t, state.Step)

	done := make(chan trainer.Report, 1)
	go func() { done <- s.stepOf(0, trainer.Step{Last: true}) }()
	s.until(1, func(m *peerMail) bool { return m.said[peerFinish][0] })
	steps := 0
	for s.all[1].strategy.versions[0] < more {
		s.step(1)
		steps++
	}
	state, err = s.all[1].strategy.State(s.ctx, true)
	require.NoError(t, err, "worker 0 waits")
	require.Equal(t, steps, state.Step)
	s.stepOf(1, trainer.Step{Last: true})
	<-done
	require.Equal(t, s.values(0), s.values(1))
	stale := s.all[0].strategy.Stale()
	require.Equal(t, stale, s.all[1].strategy.Stale())
	require.Equal(t, 2*(1+steps+1), stale.Total())
}

// The state has the newest values of all shares, and slots that belong to them.
func TestPeersState(t *testing.T) {
	s := seatPeers(t, 2, 1)
	for rank := range s.all {
		s.step(rank)
	}
	state, err := s.all[0].strategy.State(s.ctx, true)
	require.NoError(t, err)
	m := state.Slots["m"]
	for _, q := range s.all[0].params.List {
		require.NotZero(t, m[q.Offset], q.Name)
	}
	require.Equal(t, []int{1, 1}, s.all[0].strategy.versions)
	state, err = s.all[1].strategy.State(s.ctx, false)
	require.NoError(t, err)
	require.Empty(t, state.Slots)
}

// A worker sends its gradients, and its share after each update. With shares of equal size
// that is (N-1)/N of the parameters each. See the table in docs/benchmarks.md.
func TestPeersTraffic(t *testing.T) {
	const workers, steps = 3, 4
	for _, quorum := range []int{1, 100} {
		s := seatPeers(t, workers, quorum)
		for rank, w := range s.all {
			x, before := w.strategy.mail.exchange, w.group.Traffic()
			total, own := sum(x.lens), x.lens[rank]
			updates, got := 0, 0
			for range steps {
				version := w.strategy.mail.owner.version
				got += s.step(rank).Sent
				updates += w.strategy.mail.owner.version - version
			}
			if quorum == 1 {
				require.Equal(t, steps, updates, "one in each step, however many gradients come")
			} else {
				require.Zero(t, updates)
			}
			gradients := total - own + (workers-1)*headerLen
			values := (workers - 1) * (own + headerLen)
			require.Equal(t, 4*(steps*gradients+updates*values), got)
			require.EqualValues(t, got, w.group.Traffic().Payload-before.Payload)
		}
	}
}

// A request to stop ends the training of all workers with the same values, also of one that
// has already taken its last step.
func TestPeersStop(t *testing.T) {
	for _, steps := range []int{1, 1_000_000} {
		stop := make(chan struct{})
		j := job{workers: 3, peers: true, optimizer: optim.DefaultAdam(), steps: steps}
		j.change = func(rank int, c *trainer.Config) {
			if rank == 1 {
				c.Stop, c.Observer = stop, stopper{after: 5, stop: stop}
			}
		}
		if steps == 1 {
			close(stop)
		}
		out := j.run(t)
		for rank, o := range out {
			require.ErrorIs(t, o.err, trainer.ErrStopped, "rank %d", rank)
			require.Equal(t, out[0].values, o.values, "rank %d", rank)
		}
	}
}

// If rank 0 reaches the target, the training of all workers ends with the same values, which
// rank 0 has evaluated.
func TestPeersTarget(t *testing.T) {
	j := job{workers: 3, peers: true, quorum: 2, optimizer: optim.DefaultAdam(), steps: 1_000_000}
	j.change = func(rank int, c *trainer.Config) {
		c.Eval = trainer.Evaluations{Every: 20, Until: trainer.Target{Metric: "loss", Value: 1}}
		if rank != 0 {
			c.Task.(*trainer.ModelTask[nn.Batch]).Test = nil
		}
	}
	out := j.run(t)
	require.NoError(t, out[0].err)
	require.True(t, out[0].result.Reached.Found())
	require.Equal(t, out[0].result.Reached.Step+1, out[0].result.Steps, "another step carries the request to stop")
	require.Equal(t, out[0].result.Steps, out[0].result.Final.Step, "the last values are evaluated, too")
	for _, o := range out[1:] {
		require.ErrorIs(t, o.err, trainer.ErrStopped)
		require.Equal(t, out[0].values, o.values)
	}
}

// A gradient that is not finite is an error on its worker, and changes no value. The others
// name it.
func TestPeersNotFinite(t *testing.T) {
	s := seatPeers(t, 2, 1)
	before := s.values(1)
	bad := s.all[1]
	bad.params.Grads.Float32s()[3] = float32(math.Inf(1))
	_, err := bad.strategy.Step(s.ctx, bad.params, trainer.Step{Weight: 1})
	require.ErrorContains(t, err, "gradient of layers.")
	require.ErrorContains(t, err, "step 1 is not finite on rank 1 (")
	require.Equal(t, before, s.values(1))
	bad.group.Abort(err)
	s.names(0, 1)
}

// names checks that the next step of a worker fails, names the culprit, and changes no value.
func (s *peerSeats) names(rank, culprit int) {
	s.Helper()
	w, before := s.all[rank], s.values(rank)
	_, err := w.strategy.Step(s.ctx, w.params, trainer.Step{Weight: 1, Last: true})
	var lost *collective.RankError
	require.ErrorAs(s, err, &lost)
	require.Equal(s, culprit, lost.Rank)
	require.Equal(s, before, s.values(rank))
}

// A sum of finite gradients that is not finite is an error of its owner.
func TestPeersSumNotFinite(t *testing.T) {
	s := seatPeers(t, 2, 2)
	for rank, w := range s.all {
		for i := range w.params.Grads.Float32s() {
			w.params.Grads.Float32s()[i] = math.MaxFloat32
		}
		_, err := w.strategy.Step(s.ctx, w.params, trainer.Step{Weight: 1})
		if rank == 0 {
			require.NoError(t, err)
			s.gradients(1, 1)
			continue
		}
		require.ErrorContains(t, err, "the summed gradient of layers.")
	}
}

// A worker that is lost is named by all others, whatever they wait for.
func TestPeersLost(t *testing.T) {
	for name, lose := range map[string]func(g *collective.Group){
		"aborts": func(g *collective.Group) { g.Abort(errors.New("the disk is full")) },
		"leaves": func(g *collective.Group) { _ = g.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			s := seatPeers(t, 3, 0)
			for rank := range s.all {
				s.step(rank)
			}
			lose(s.all[1].group)
			s.names(0, 1)
			_, err := s.all[2].strategy.State(s.ctx, true)
			var lost *collective.RankError
			require.ErrorAs(t, err, &lost)
			require.Equal(t, 1, lost.Rank)
		})
	}
}

// A worker that ends its messages before it has finished is an error of the others.
func TestPeersEndEarly(t *testing.T) {
	s := seatPeers(t, 2, 0)
	ended := make(chan error, 1)
	go func() { ended <- s.all[1].strategy.endMessages(s.ctx, s.all[1].group) }()
	<-s.all[0].strategy.mail.ended
	_, err := s.all[0].strategy.Step(s.ctx, s.all[0].params, trainer.Step{Weight: 1, Last: true})
	require.ErrorContains(t, err, "worker 1 has ended before this one")
	s.all[0].group.Abort(err)
	require.Error(t, <-ended)
}

func TestPeersRefuse(t *testing.T) {
	groups := local(t, 1, 0)
	b := cpu.New(cpu.Options{})
	defer b.Close()
	p := NewPeers(b, optim.DefaultAdam(), -1)
	_, err := p.Start(t.Context(), trainer.Start{Group: groups[0]})
	require.ErrorContains(t, err, "the quorum must be at least 1, not -1")
	require.NoError(t, p.Disconnect(t.Context()))
	require.Equal(t, "ps-peers, updates of 2 gradients", PeersPolicy(2).String())
	require.Equal(t, "ps-peers, updates of all gradients", PeersPolicy(0).String())
}

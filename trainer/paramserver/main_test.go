package paramserver

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(os.Exit))
}

func deadline(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// local returns the groups of n ranks in this process.
func local(t testing.TB, workers, servers int) []*collective.Group {
	views, transports := collective.Local(workers + servers)
	groups := make([]*collective.Group, len(views))
	for i := range groups {
		groups[i] = collective.NewGroup(views[i], collective.OverTransport(views[i], transports[i]), collective.Options{})
		t.Cleanup(func() { assert.NoError(t, groups[i].Close()) })
	}
	return groups
}

// clustered returns the groups of a cluster whose members have roles.
func clustered(c cluster.Config) func(t testing.TB, workers, servers int) []*collective.Group {
	return func(t testing.TB, workers, servers int) []*collective.Group {
		c := c
		c.Cluster, c.Node, c.LocalSize, c.Calibration = t.Name(), "m", workers+servers, "off"
		nodes := make([]*cluster.Node, c.LocalSize)
		for i := range nodes {
			c.Local, c.Role = i, collective.Worker
			if i >= workers {
				c.Role = collective.Server
			}
			var err error
			nodes[i], err = cluster.Join(deadline(t), c)
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, nodes[i].Close()) })
			if i == 0 {
				c.Join = []string{nodes[0].Addr().String()}
			}
		}
		groups := make([]*collective.Group, len(nodes))
		each(groups, func(i int) {
			g, err := nodes[i].Group(deadline(t))
			if assert.NoError(t, err) {
				groups[g.Rank()] = g
			}
		})
		return groups
	}
}

// each calls f for every index, concurrently.
func each[T any](all []T, f func(i int)) {
	var done sync.WaitGroup
	for i := range all {
		done.Go(func() { f(i) })
	}
	done.Wait()
}

// A job is a run for tests.
type job struct {
	connect   func(t testing.TB, workers, servers int) []*collective.Group // nil: local
	workers   int
	servers   int              // 0: trainer.AllReduce
	apart     bool             // servers are not workers
	bucket    int              // bytes; 0: one bucket
	plan      []trainer.Switch // between "ps-sync", with which it begins, and "allreduce"; may be nil
	policy    *Policy          // of Async; nil: Sync
	peers     bool             // Peers with this quorum
	quorum    int
	optimizer optim.Optimizer
	steps     int
	change    func(rank int, c *trainer.Config)
}

// An outcome is what one worker has in the end.
type outcome struct {
	values []float32
	state  trainer.State
	result trainer.Result
	stale  Staleness // of Async and Peers
	err    error
}

// hidden is a width at which one parameter is cut if there are 3 servers or more.
const hidden = 160

var digits = sync.OnceValue(func() *data.Set {
	train, test := data.Generate(data.DigitsOptions{Train: 256, Test: 16, Side: 8})
	return &data.Set{Train: train, Test: test}
})

// run trains and returns the outcome of every worker.
func (j job) run(t testing.TB) []outcome {
	connect, apart := j.connect, 0
	if connect == nil {
		connect = local
	}
	if j.apart {
		apart = j.servers
	}
	groups := connect(t, j.workers, apart)
	out := make([]outcome, j.workers)
	each(groups, func(rank int) {
		if rank >= j.workers {
			others, err := groups[rank].Sub(deadline(t), 1, rank)
			if assert.NoError(t, err) {
				defer others.Close()
			}
			b := cpu.New(cpu.Options{})
			defer b.Close()
			assert.NoError(t, Serve(deadline(t), groups[rank], j.workers, b, j.optimizer))
			return
		}
		out[rank] = j.train(t, groups[rank])
	})
	return out
}

// train trains on one worker.
func (j job) train(t testing.TB, g *collective.Group) (o outcome) {
	ctx := deadline(t)
	servers := Servers{Among: j.servers}
	workers := g
	if j.apart {
		var err error
		if workers, err = g.Sub(ctx, 0, g.Rank()); err != nil {
			return outcome{err: err}
		}
		defer workers.Close()
		servers = Servers{Group: g}
	}
	b := cpu.New(cpu.Options{})
	defer b.Close()
	m, err := nn.NewClassifier(b, models.ReluReluSoftmax(hidden, .1), []int{64}, 10, uint64(g.Rank()+1))
	require.NoError(t, err)
	set := digits()
	rows, err := data.NewSampler(set.Train.Rows, 3, g.Rank(), j.workers, 1)
	require.NoError(t, err)
	sync := NewSync(b, j.optimizer, servers)
	sync.SetBucket(j.bucket)
	var strategy trainer.Strategy = sync
	switch all := trainer.NewAllReduce(b, j.optimizer); {
	case j.plan != nil:
		s := trainer.NewSwitching(trainer.Choice{Name: "ps-sync", Strategy: strategy}, trainer.Choice{Name: "allreduce", Strategy: all})
		assert.NoError(t, s.Plan(j.plan))
		strategy = s
	case j.peers:
		strategy = NewPeers(b, j.optimizer, j.quorum)
	case j.servers == 0:
		strategy = all
	case j.policy != nil:
		strategy = NewAsync(b, j.optimizer, servers, *j.policy)
	}
	defer strategy.Close()
	c := trainer.Config{
		Groups: trainer.Only(workers), Backend: b, Strategy: strategy, Steps: j.steps, Seed: 1,
		Task: trainer.NewTask(m, data.NewFeed(set.Train.Stage(3, b), rows), data.NewPart(set.Test.Stage(8, b), set.Test.Rows, g.Rank(), j.workers, 8)),
	}
	if j.change != nil {
		j.change(g.Rank(), &c)
	}
	o.result, o.err = trainer.Train(ctx, c)
	stopped := errors.Is(o.err, trainer.ErrStopped)
	if stopped {
		o.err = nil
	}
	if o.err == nil {
		o.state, o.err = strategy.State(ctx, g.Rank() == 0)
	}
	if s, ok := strategy.(interface {
		Disconnect(context.Context) error
		Stale() Staleness
	}); ok && o.err == nil {
		o.stale = s.Stale()
		o.err = s.Disconnect(ctx)
	}
	if j.apart && o.err == nil {
		o.err = End(ctx, g, j.workers)
	}
	if o.err == nil {
		o.err = workers.Barrier(ctx)
	}
	if o.err == nil && stopped {
		o.err = trainer.ErrStopped
	}
	o.values = append(o.values, m.Params().Values.Float32s()...)
	return o
}

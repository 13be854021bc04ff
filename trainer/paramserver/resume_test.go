package paramserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer"
)

// A revival is a run whose servers are killed and started again. Workers keep a group
// of their own. The servers have a goroutine each, and a new one in each group.
type revival struct {
	t       *testing.T
	workers int
	servers int
	dir     string
	kill    []death // of servers, by number of the group
	bucket  int     // bytes; 0: one bucket

	mu     sync.Mutex
	groups [][]*collective.Group
	alive  sync.WaitGroup // servers of the newest group
	died   int
}

// A death is when a server dies: after this many calls of its group or, with early, when it
// would have sent values for the first time after as many.
type death struct {
	server, calls int
	early         bool
}

// killed is what a server panics with where it dies.
type killed struct{}

// A mortal counts the calls of a server, and kills it.
type mortal struct {
	nn.Backend
	death
	calls int
}

func (m *mortal) Called(collective.Call, uint64, uint64, time.Duration, error) {
	if m.calls++; m.calls == m.death.calls && !m.early {
		panic(killed{})
	}
}

// Sync is what a share waits for before its values leave.
func (m *mortal) Sync(ctx context.Context) error {
	if m.early && m.calls >= m.death.calls {
		panic(killed{})
	}
	return m.Backend.Sync(ctx)
}

// group returns all groups of a number, and starts the servers of new ones.
func (r *revival) group(number int) []*collective.Group {
	r.mu.Lock()
	defer r.mu.Unlock()
	if number < len(r.groups) {
		return r.groups[number]
	}
	r.alive.Wait()
	views, transports := collective.Local(r.workers + r.servers)
	all := make([]*collective.Group, len(views))
	for i := range all {
		m := &mortal{death: death{calls: -1}}
		if server := i - r.workers; number < len(r.kill) && r.kill[number].server == server {
			m.death = r.kill[number]
		}
		all[i] = collective.NewGroup(views[i], collective.OverTransport(views[i], transports[i]), collective.Options{Observer: m})
		if i >= r.workers {
			r.alive.Go(func() { r.serve(all[i], m) })
		}
	}
	r.groups = append(r.groups, all)
	return all
}

func (r *revival) serve(g *collective.Group, m *mortal) {
	defer func() {
		dead := recover()
		_, expected := dead.(killed)
		assert.True(r.t, dead == nil || expected, "%v", dead)
		if expected {
			r.died++
		}
		assert.NoError(r.t, g.Close())
	}()
	b := cpu.New(cpu.Options{})
	defer b.Close()
	m.Backend = b
	_ = ServeKept(deadline(r.t), g, r.workers, Keeper{Backend: m, Optimizer: optim.DefaultAdam(), Path: r.path(g.Rank())})
}

func (r *revival) path(rank int) string { return filepath.Join(r.dir, fmt.Sprint(rank)) }

// run returns the values and the state of worker 0 after some steps. One of the steps has no
// rows.
func (r *revival) run() ([]float32, trainer.State) {
	r.dir = r.t.TempDir()
	own := local(r.t, r.workers, 0)
	var values []float32
	var state trainer.State
	each(own, func(rank int) {
		ctx, number := deadline(r.t), 0
		b := cpu.New(cpu.Options{})
		defer b.Close()
		m, err := nn.NewClassifier(b, models.ReluReluSoftmax(8, 0), []int{4}, 3, uint64(rank+1))
		if !assert.NoError(r.t, err) {
			return
		}
		s := NewSync(b, optim.DefaultAdam(), Servers{
			Group: r.group(0)[rank],
			Regroup: func(context.Context, error) (*collective.Group, error) {
				number++
				return r.group(number)[rank], nil
			},
		})
		s.SetBucket(r.bucket)
		_, err = s.Start(ctx, trainer.Start{Group: own[rank], Params: m.Params()})
		assert.NoError(r.t, err)
		for step := range 5 {
			for i := range m.Params().Grads.Float32s() {
				m.Params().Grads.Float32s()[i] = float32((i+1)*(rank+2)*(step+3)%11-5) / 8
			}
			weight := 1
			if step == 3 {
				weight = 0
			}
			if r.bucket > 0 {
				final := s.Open(ctx, m.Params(), trainer.Step{Index: step})
				for _, q := range slices.Backward(m.Params().List) {
					final(q.Offset)
				}
			}
			_, err := s.Step(ctx, m.Params(), trainer.Step{Index: step, Weight: weight})
			assert.NoError(r.t, err)
		}
		last, err := s.State(ctx, rank == 0)
		assert.NoError(r.t, err)
		if err := End(ctx, s.servers.Group, r.workers); err != nil {
			assert.True(r.t, IsServerLost(err, r.workers), "%v", err)
		}
		assert.NoError(r.t, own[rank].Barrier(ctx))
		if rank == 0 {
			values, state = append(values, m.Params().Values.Float32s()...), last
		}
	})
	r.close()
	return values, state
}

// close waits for the servers and closes all groups.
func (r *revival) close() {
	r.alive.Wait()
	for _, all := range r.groups {
		for _, g := range all {
			assert.NoError(r.t, g.Close())
		}
	}
}

// A server that dies at any moment, and is started again, changes no bit: each update is
// made exactly once.
func TestServersStartAgain(t *testing.T) {
	for name, bucket := range map[string]int{"one bucket": 0, "a bucket for each parameter": 1} {
		t.Run(name, func(t *testing.T) { startAgain(t, bucket) })
	}
}

func startAgain(t *testing.T, bucket int) {
	values, state := (&revival{t: t, workers: 2, servers: 2, bucket: bucket}).run()
	require.Equal(t, 5, state.Step)
	same := func(t *testing.T, kill ...death) (died int) {
		r := &revival{t: t, workers: 2, servers: 2, bucket: bucket, kill: kill}
		gotValues, gotState := r.run()
		require.Equal(t, values, gotValues, "%+v", kill)
		require.Equal(t, state, gotState, "%+v", kill)
		return r.died
	}
	for server := range 2 {
		for _, early := range []bool{false, true} {
			calls := 1
			for ; same(t, death{server, calls, early}) == 1; calls++ {
			}
			require.Greater(t, calls, 10, "moments to die")
		}
	}
	for calls := 3; calls < 30; calls += 4 { // the next server dies in the group that follows
		for again := 1; again < 12; again += 2 {
			same(t, death{0, calls, false}, death{1, again, calls%3 == 0}, death{0, again + 1, false})
		}
	}
}

// If one server has lost its share, all refuse to continue, and name its file.
func TestStartAgainRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(path string) error
		want   string
	}{
		"both halves damaged": {func(path string) error {
			b, err := os.ReadFile(path)
			if err == nil {
				for i := range b {
					b[i] ^= 1
				}
				err = os.WriteFile(path, b, 0o600)
			}
			return err
		}, "in the first half because its header is damaged"},
		"no file": {os.Remove, "because nothing was saved"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &revival{t: t, workers: 1, servers: 2, dir: t.TempDir(), kill: []death{{server: 1, calls: 20}}}
			own := local(t, 1, 0)
			b := cpu.New(cpu.Options{})
			defer b.Close()
			m, err := nn.NewClassifier(b, models.ReluReluSoftmax(8, 0), []int{4}, 3, 1)
			require.NoError(t, err)
			s := NewSync(b, optim.DefaultAdam(), Servers{
				Group: r.group(0)[0],
				Regroup: func(_ context.Context, cause error) (*collective.Group, error) {
					require.Error(t, cause)
					require.NoError(t, c.damage(r.path(2)))
					return r.group(1)[0], nil
				},
			})
			_, err = s.Start(deadline(t), trainer.Start{Group: own[0], Params: m.Params()})
			for step := 0; err == nil; step++ {
				_, err = s.Step(deadline(t), m.Params(), trainer.Step{Index: step, Weight: 1})
			}
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, r.path(2))
			r.close()
		})
	}
}

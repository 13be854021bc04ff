package keyed

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/store"
)

// asRank makes the test binary a rank of the cluster in its environment: a server, or a
// client that says that it is there and then uses the server until it fails.
const asRank = "RINGTRAIN_TEST_KEYED"

// here is the key that the process of a client sets.
const here = "here"

// rankProcess is the process of a rank.
func rankProcess() (code int) {
	err := func() error {
		ctx := context.Background()
		c, _, err := cluster.FromEnv()
		if err != nil {
			return err
		}
		node, err := cluster.Join(ctx, c)
		if err != nil {
			return err
		}
		defer node.Close()
		g, err := node.Group(ctx)
		if err != nil {
			return err
		}
		if c.Role == collective.Server {
			b := cpu.New(cpu.Options{})
			defer b.Close()
			return Serve(ctx, g, 1, NewLocal(b, sgd()))
		}
		s, err := Connect(ctx, g, 1)
		for err == nil {
			_, err = s.Set(ctx, here, store.Raw(nil), store.Any)
		}
		return err
	}()
	fmt.Fprintln(os.Stderr, err)
	return 1
}

// A client or server that is killed ends the calls of all others within seconds, with an
// error that names it. What a client has pulled before is still there.
func TestRankKilled(t *testing.T) {
	for _, transport := range []string{cluster.TransportTCP, cluster.TransportAuto} {
		for _, role := range []collective.Role{collective.Worker, collective.Server} {
			t.Run(fmt.Sprint(transport, " ", role), func(t *testing.T) { testRankKilled(t, transport, role) })
		}
	}
}

func testRankKilled(t *testing.T, transport string, role collective.Role) {
	c := cluster.Config{Cluster: t.Name(), Node: "m", LocalSize: 3, Calibration: "off", Transport: transport}
	roles, victim := []collective.Role{collective.Worker, collective.Worker, collective.Server}, 1
	if role == collective.Server {
		victim = 2
	}
	var nodes []*cluster.Node
	for c.Local, c.Role = range roles {
		if c.Local == victim {
			continue
		}
		node, err := cluster.Join(t.Context(), c)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, node.Close()) })
		nodes, c.Join = append(nodes, node), append(c.Join, node.Addr().String())
	}
	c.Local, c.Role = victim, role
	kill := startRank(t, c)

	groups := make([]*collective.Group, len(nodes))
	each(len(nodes), func(i int) {
		var err error
		groups[i], err = nodes[i].Group(t.Context())
		assert.NoError(t, err)
	})
	held := newLocal(t, sgd())
	var ready sync.WaitGroup
	ready.Add(victim) // as many clients are here
	whenReady := func() {
		ready.Done()
		ready.Wait()
		kill()
	}
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		var err error
		if g.Rank() == 2 {
			err = Serve(ctx, g, 1, held)
		} else {
			err = useUntilKilled(t, ctx, g, victim, whenReady)
		}
		var lost *collective.RankError
		if assert.ErrorAs(t, err, &lost, "rank %d", g.Rank()) {
			assert.Equal(t, victim, lost.Rank, "rank %d: %v", g.Rank(), err)
			assert.ErrorIs(t, err, collective.ErrLost)
		}
	})
}

// startRank starts the process of a rank, and returns what kills it.
func startRank(t *testing.T, c cluster.Config) (kill func()) {
	p := exec.Command(os.Args[0])
	p.Env = append(os.Environ(), append(c.Environ(), asRank+"=1")...)
	p.Stderr = os.Stderr
	require.NoError(t, p.Start())
	kill = sync.OnceFunc(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	t.Cleanup(kill)
	return kill
}

// useUntilKilled uses a store, kills the victim once it has joined, and returns the error of
// the call that fails.
func useUntilKilled(t *testing.T, ctx context.Context, g *collective.Group, victim int, kill func()) error {
	s, err := Connect(ctx, g, 1)
	if err != nil {
		return err
	}
	copies := []Copy{{Key: "w"}}
	_, err = s.Set(ctx, "w", tensor(t, []float32{8}), store.Any)
	assert.NoError(t, err)
	_, err = s.Pull(ctx, copies)
	assert.NoError(t, err)
	if victim == 1 {
		for keys := 0; keys < 2 && err == nil; {
			var all []string
			all, err = s.Keys(ctx, "")
			keys = len(all)
		}
	}
	var killing sync.WaitGroup
	killing.Go(kill)
	for err == nil {
		err = s.Push(ctx, Gradient{"w", tensor(t, []float32{0})})
	}
	killing.Wait()
	begin := time.Now()
	var lost *collective.RankError
	_, _, again := s.Get(ctx, "w")
	assert.ErrorAs(t, again, &lost)
	assert.ErrorAs(t, s.End(ctx), &lost)
	_, again = s.Set(ctx, "later", store.Raw(nil), 0)
	assert.ErrorIs(t, again, store.ErrClosed)
	assert.Less(t, time.Since(begin), 10*time.Second)
	assert.Equal(t, []float32{8}, floats(t, copies[0].Value))
	return err
}

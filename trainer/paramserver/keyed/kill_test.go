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

// asServer makes the test binary a server of the cluster in its environment.
const asServer = "RINGTRAIN_TEST_KEYED"

// victims is the number of servers among three ranks of which one is killed.
const victims = 1

// serveProcess is the process of a server.
func serveProcess() (code int) {
	err := func() error {
		c, _, err := cluster.FromEnv()
		if err != nil {
			return err
		}
		node, err := cluster.Join(context.Background(), c)
		if err != nil {
			return err
		}
		defer node.Close()
		g, err := node.Group(context.Background())
		if err != nil {
			return err
		}
		b := cpu.New(cpu.Options{})
		defer b.Close()
		return Serve(context.Background(), g, victims, NewLocal(b, sgd()))
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A server that is killed ends the calls of all clients within seconds, with an error that
// names it. What a client has pulled before is still there.
func TestServerKilled(t *testing.T) {
	for _, transport := range []string{cluster.TransportTCP, cluster.TransportAuto} {
		t.Run(transport, func(t *testing.T) { testServerKilled(t, transport) })
	}
}

func testServerKilled(t *testing.T, transport string) {
	c := cluster.Config{Cluster: t.Name(), Node: "m", LocalSize: 3, Calibration: "off", Transport: transport}
	nodes := make([]*cluster.Node, 2)
	for i := range nodes {
		c.Local = i
		var err error
		nodes[i], err = cluster.Join(t.Context(), c)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, nodes[i].Close()) })
		c.Join = append(c.Join, nodes[i].Addr().String())
	}
	c.Local, c.Role = 2, collective.Server
	victim := exec.Command(os.Args[0])
	victim.Env = append(os.Environ(), append(c.Environ(), asServer+"=1")...)
	victim.Stderr = os.Stderr
	require.NoError(t, victim.Start())
	ready := make(chan struct{}, 2)
	var killing sync.WaitGroup
	killing.Go(func() {
		for range 2 {
			select {
			case <-ready:
			case <-t.Context().Done():
			}
		}
		_ = victim.Process.Kill()
		_ = victim.Wait()
	})
	t.Cleanup(killing.Wait)
	collectivetest.Run(t, groupsOf(t, nodes), func(ctx context.Context, g *collective.Group) {
		s, err := Connect(ctx, g, victims)
		if !assert.NoError(t, err) {
			return
		}
		copies := []Copy{{Key: fmt.Sprint("key of ", g.Rank())}}
		_, err = s.Set(ctx, copies[0].Key, tensor(t, []float32{8}), 0)
		assert.NoError(t, err)
		_, err = s.Pull(ctx, copies)
		assert.NoError(t, err)
		ready <- struct{}{}
		for err == nil {
			err = s.Push(ctx, Gradient{copies[0].Key, tensor(t, []float32{0})})
		}
		begin := time.Now()
		var lost *collective.RankError
		if assert.ErrorAs(t, err, &lost) {
			assert.Equal(t, 2, lost.Rank)
			assert.ErrorIs(t, err, collective.ErrLost)
		}
		_, _, err = s.Get(ctx, copies[0].Key)
		assert.ErrorAs(t, err, &lost)
		assert.Less(t, time.Since(begin), 10*time.Second)
		assert.Equal(t, []float32{8}, floats(t, copies[0].Value))
		assert.ErrorAs(t, s.End(ctx), &lost)
		_, err = s.Set(ctx, "later", store.Raw(nil), 0)
		assert.ErrorAs(t, err, &lost)
	})
}

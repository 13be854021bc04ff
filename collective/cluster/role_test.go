package cluster_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
)

// Workers rank before servers, whatever their rank on their machine, in the
// first View and after a break.
func TestRoles(t *testing.T) {
	roles := []collective.Role{collective.Server, collective.Worker, collective.Server, collective.Worker}
	c := cluster.Config{Cluster: t.Name(), Node: "m", LocalSize: len(roles)}
	nodes := make([]*cluster.Node, len(roles))
	for i, role := range roles {
		c.Local, c.Role = i, role
		var err error
		nodes[i], err = cluster.Join(deadline(t), c)
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, nodes[i].Close()) })
		if i == 0 {
			c.Join = []string{nodes[0].Addr().String()}
		}
	}
	gs := groups(t, nodes)
	ranks := []int{2, 0, 3, 1}
	for i, g := range gs {
		require.Equal(t, ranks[i], g.Rank(), "process %d", i)
		require.Equal(t, []int{0, 1}, g.View().Ranks(collective.Worker))
		require.Equal(t, []int{2, 3}, g.View().Ranks(collective.Server))
	}
	var all sync.WaitGroup
	for i, g := range gs {
		all.Go(func() {
			peers, err := g.Sub(deadline(t), int(roles[i]), g.Rank())
			if assert.NoError(t, err) && roles[i] == collective.Worker {
				sumIs(t, 2)(deadline(t), peers)
			}
		})
	}
	all.Wait()
	for i, g := range regroup(t, nodes, gs) {
		require.Equal(t, ranks[i], g.Rank(), "process %d", i)
		require.Equal(t, []int{2, 3}, g.View().Ranks(collective.Server))
	}
}

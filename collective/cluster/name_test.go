package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// A process that takes the name of a live member gets an error that says so, and the
// job continues without it.
func TestNameTaken(t *testing.T) {
	c := cluster.Config{Cluster: t.Name(), Node: "m"}
	nodes := start(t, c, 2)
	gs := groups(t, nodes)
	c.Local, c.LocalSize, c.Join = 1, 2, []string{nodes[0].Addr().String()}
	twin, err := cluster.Join(deadline(t), c)
	require.NoError(t, err)
	defer twin.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	_, err = twin.Group(ctx)
	require.ErrorContains(t, err, "m/1: the job has already started without this process")
	require.NoError(t, ctx.Err(), "it learns why before ctx ends")
	for range 100 {
		collectivetest.Run(t, gs, sumIs(t, 2))
	}
	collectivetest.Run(t, regroup(t, nodes, gs), sumIs(t, 2))
}

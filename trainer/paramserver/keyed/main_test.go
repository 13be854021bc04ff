package keyed

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer/store"
)

func TestMain(m *testing.M) {
	if os.Getenv(asRank) != "" {
		os.Exit(rankProcess())
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(os.Exit))
}

// newLocal returns a Local without keys.
func newLocal(t testing.TB, o optim.Optimizer) *Local {
	b := cpu.New(cpu.Options{})
	t.Cleanup(func() { assert.NoError(t, b.Close()) })
	return NewLocal(b, o)
}

// locals returns n Locals.
func locals(t testing.TB, n int, o optim.Optimizer) []*Local {
	all := make([]*Local, n)
	for i := range all {
		all[i] = newLocal(t, o)
	}
	return all
}

// clustered returns the groups of a cluster on this machine.
func clustered(c cluster.Config) collectivetest.Maker {
	return func(t testing.TB, n int) []*collective.Group {
		c := c
		c.Cluster, c.Node, c.LocalSize, c.Calibration = t.Name(), "m", n, "off"
		nodes := make([]*cluster.Node, n)
		for i := range nodes {
			c.Local = i
			var err error
			nodes[i], err = cluster.Join(t.Context(), c)
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, nodes[i].Close()) })
			if i == 0 {
				c.Join = []string{nodes[0].Addr().String()}
			}
		}
		groups := make([]*collective.Group, n)
		each(n, func(i int) {
			g, err := nodes[i].Group(t.Context())
			if assert.NoError(t, err) {
				groups[g.Rank()] = g
			}
		})
		return groups
	}
}

// with calls f with a client of each of the first groups. The others serve the Locals.
func with(t testing.TB, groups []*collective.Group, servers []*Local, f func(ctx context.Context, s *Remote)) {
	t.Helper()
	clients := len(groups) - len(servers)
	collectivetest.Run(t, groups, func(ctx context.Context, g *collective.Group) {
		if g.Rank() >= clients {
			assert.NoError(t, Serve(ctx, g, len(servers), servers[g.Rank()-clients]))
			return
		}
		s, err := Connect(ctx, g, len(servers))
		if !assert.NoError(t, err) {
			return
		}
		defer func() { // also if f fails
			assert.NoError(t, s.End(ctx))
			assert.ErrorIs(t, s.End(ctx), store.ErrClosed)
		}()
		f(ctx, s)
	})
}

func tensor[F float32 | float64](t testing.TB, data []F, shape ...int) store.Value {
	t.Helper()
	v, err := store.Tensor(data, shape...)
	require.NoError(t, err)
	return v
}

// scalar returns a tensor without dimensions.
func scalar(t testing.TB, x float32) store.Value {
	v := tensor(t, []float32{x})
	v.Shape = []int{}
	return v
}

// floats returns the elements of a float32 tensor.
func floats(t testing.TB, v store.Value) []float32 {
	t.Helper()
	x, err := store.Floats[float32](v)
	require.NoError(t, err)
	return x
}

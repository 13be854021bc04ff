package collective_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// A group does not keep the vectors that it has sent and received in earlier calls.
func TestVectorsAreForgotten(t *testing.T) {
	const n = 3 << 18
	for name, call := range map[string]func(ctx context.Context, g *collective.Group, v []float32) error{
		"Broadcast": func(ctx context.Context, g *collective.Group, v []float32) error {
			return collective.Broadcast(ctx, g, v, 0)
		},
		"AllToAll": func(ctx context.Context, g *collective.Group, v []float32) error {
			return g.AllToAll(ctx, collective.Of(v), collective.Of(make([]float32, len(v))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var kept atomic.Int32
			collectivetest.Run(t, collectivetest.Local(t, 3), func(ctx context.Context, g *collective.Group) {
				v := make([]float32, n)
				kept.Add(1)
				runtime.AddCleanup(&v[0], func(int) { kept.Add(-1) }, 0)
				assert.NoError(t, call(ctx, g, v))
				assert.NoError(t, collective.AllReduce(ctx, g, []float32{1}, collective.Sum))
			})
			require.Eventually(t, func() bool { runtime.GC(); return kept.Load() == 0 }, time.Minute, time.Millisecond)
		})
	}
}

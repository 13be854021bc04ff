package tcp_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// What a key costs: allreduce of two ranks on one machine, which share its
// cores.
func BenchmarkAllReduce(b *testing.B) {
	for _, nodes := range []struct {
		name string
		make func() []*node
	}{{"plain", func() []*node { return listen(b, 2) }}, {"key", func() []*node { return listenAs(b, 2, prover(b)) }}} {
		for _, n := range []int{16, 16 << 10, 4 << 20} {
			b.Run(fmt.Sprintf("%s/%d", nodes.name, 4*n), func(b *testing.B) {
				groups := connect(b, nodes.make())
				b.SetBytes(int64(4 * n))
				b.ReportAllocs()
				b.ResetTimer()
				collectivetest.Run(b, groups, func(ctx context.Context, g *collective.Group) {
					s := make([]float32, n)
					for range b.N {
						assert.NoError(b, collective.AllReduce(ctx, g, s, collective.Sum))
					}
				})
			})
		}
	}
}

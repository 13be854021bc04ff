package collective_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// What more ranks of one process cost.
func BenchmarkLocalRanks(b *testing.B) {
	for _, ranks := range []int{2, 8, 64} {
		for _, bytes := range []int{4, 4 << 10, 256 << 10, 1 << 20, 16 << 20} {
			b.Run(fmt.Sprintf("%d/%d", ranks, bytes), func(b *testing.B) {
				groups := collectivetest.Local(b, ranks)
				vectors := make([][]float32, ranks)
				for r := range vectors {
					vectors[r] = make([]float32, bytes/4)
				}
				reduce := func(times int) {
					collectivetest.Run(b, groups, func(ctx context.Context, g *collective.Group) {
						for range times {
							assert.NoError(b, collective.AllReduce(ctx, g, vectors[g.Rank()], collective.Sum))
						}
					})
				}
				reduce(2) // so that memory is there
				b.SetBytes(int64(bytes))
				b.ReportAllocs()
				b.ResetTimer()
				reduce(b.N)
			})
		}
	}
}

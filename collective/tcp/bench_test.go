package tcp_test

import (
	"testing"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

func BenchmarkAllReduce(b *testing.B) { collectivetest.BenchmarkAllReduce(b, groups) }

// BenchmarkKey measures the cost of TLS, which allocates memory for every record.
func BenchmarkKey(b *testing.B) {
	collectivetest.BenchmarkAllReduce(b, func(t testing.TB, n int) []*collective.Group {
		return connect(t, listenAs(t, n, prover(t)))
	})
}

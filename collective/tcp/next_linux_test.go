package tcp_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/secret"
	"github.com/ringtrain/ringtrain/collective/tcp"
)

func TestMessages(t *testing.T) {
	for name, make := range map[string]collectivetest.Maker{
		"sockets": groups,
		"TLS":     streams(1, prover),
	} {
		t.Run(name, func(t *testing.T) { collectivetest.TestMessages(t, make) })
	}
	// Under TLS, turns depend on how soon the goroutine of each Link runs.
	t.Run("turns", func(t *testing.T) { collectivetest.TestTurns(t, groups) })
	t.Run("streams", func(t *testing.T) {
		defer tcp.SetLeastStripe(256)()
		collectivetest.TestMessages(t, streams(3, noKeys))
		collectivetest.TestMessages(t, streams(3, prover))
	})
}

// All ranks that wait for messages name the one that dies, or falls silent.
func TestDeathDuringNext(t *testing.T) {
	const n, victim = 4, 2
	for name, prove := range map[string]func(tcp.Identity) *secret.Identity{"sockets": noKey, "TLS": prover(t)} {
		t.Run(name, func(t *testing.T) {
			vs, made := connectView(t, listenAs(t, n, prove), 1)
			under := make([]collective.Transport, n)
			for r := range under {
				under[r] = made[r]
			}
			began := time.Now()
			collectivetest.Run(t, collectivetest.Groups(t, vs, under, collective.Options{}), func(ctx context.Context, g *collective.Group) {
				m, err := g.Messages(ctx)
				require.NoError(t, err)
				if g.Rank() == victim {
					made[victim].Kill()
					return
				}
				_, err = m.Next(ctx)
				var lost *collective.RankError
				if assert.ErrorAs(t, err, &lost, "rank %d", g.Rank()) {
					assert.Equal(t, victim, lost.Rank, "rank %d: %v", g.Rank(), err)
					assert.Equal(t, "n/2", lost.Node)
					assert.ErrorIs(t, err, collective.ErrLost)
				}
			})
			assert.Less(t, time.Since(began), 3*time.Second)
		})
	}
}

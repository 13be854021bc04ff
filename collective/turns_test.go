package collective_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// A crowd is a transport on which every rank always has a message.
type crowd struct {
	idle
	asked [][]int
	seq   map[int]uint64
}

func (c *crowd) Abilities() collective.Abilities { return collective.Abilities{Next: c.next} }

func (c *crowd) next(_ context.Context, from []int, h *collective.Header) (int, error) {
	c.asked = append(c.asked, slices.Clone(from))
	c.seq[from[0]]++
	h.Seq, h.Call.DType = c.seq[from[0]], collective.Uint8
	return from[0], nil
}

func (c *crowd) Recv(context.Context, int, *collective.Header, [][]byte) error { return nil }

// Next asks first for the rank that has waited longest.
func TestNextTurns(t *testing.T) {
	v := collective.View{Self: 1, Members: make([]collective.Member, 4)}
	c := &crowd{seq: map[int]uint64{}}
	g := collective.NewGroup(v, collective.OverTransport(v, c), collective.Options{})
	defer g.Close()
	m, err := g.Messages(t.Context())
	require.NoError(t, err)
	for range 4 {
		_, err := m.Next(t.Context())
		require.NoError(t, err)
	}
	require.Equal(t, [][]int{{0, 2, 3}, {2, 3, 0}, {3, 0, 2}, {0, 2, 3}}, c.asked)
}

package membership

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// What assemble returns is kept until a process comes or goes, because each message and
// tick asks for it.
func TestCensusAssembles(t *testing.T) {
	const ranks = 128
	worker := func(local int) candidate {
		return expects(collective.Member{Name: fmt.Sprint("m/", local), Nonce: 1, Node: "m", Local: local, LocalSize: ranks}, 1)
	}
	s := newCensus(worker(0))
	for local := range ranks {
		members, w := s.assemble()
		require.Nil(t, members)
		require.Len(t, w.Missing, ranks-max(local, 1))
		s.add(worker(local))
	}
	members, w := s.assemble()
	require.Len(t, members, ranks)
	require.True(t, w.Complete())
	require.Zero(t, testing.AllocsPerRun(10, func() { s.assemble() }))

	s.remove(peerOf(members[5]))
	members, w = s.assemble()
	require.Nil(t, members)
	require.Equal(t, []Slot{{"m", 5}}, w.Missing)
}

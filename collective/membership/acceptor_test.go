package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// An acceptor keeps its promises, and reports what it has accepted.
func TestAcceptor(t *testing.T) {
	round := func(n uint64) ballot { return ballot{Round: n, By: peer{Name: "a", Nonce: 1}} }
	proposal := func(n uint64) *vote { return &vote{Ballot: round(n), View: collective.View{Job: n, Epoch: 1}} }
	var a acceptor
	now := time.Unix(1, 0)
	require.Equal(t, message{Kind: promise, Ballot: round(2)}, a.prepare(round(2)))
	require.Equal(t, message{Kind: refuse, Ballot: round(2)}, a.prepare(round(1)))
	require.Equal(t, message{Kind: refuse, Ballot: round(2)}, a.propose(now, proposal(1)))
	require.Nil(t, a.unfinished())

	second := proposal(2)
	require.Equal(t, message{Kind: accept, Ballot: round(2)}, a.propose(now, second))
	require.Same(t, second, a.unfinished())
	require.Equal(t, now, a.since)
	require.Equal(t, message{Kind: promise, Ballot: round(3), Vote: second}, a.prepare(round(3)))
	require.Equal(t, message{Kind: refuse, Ballot: round(3)}, a.propose(now, second), "a copy is late")

	a.giveUp(false)
	require.Nil(t, a.unfinished())
	require.Equal(t, message{Kind: promise, Ballot: round(4), Vote: second}, a.prepare(round(4)), "others must hear of it")
	fourth := proposal(4)
	require.Equal(t, message{Kind: accept, Ballot: round(4)}, a.propose(now, fourth))
	require.Same(t, fourth, a.unfinished(), "a new View is not hopeless")
}

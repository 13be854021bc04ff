package membership

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// A contradiction that lasts ends the wait on both sides. One that passes does not.
func TestContradictionsEndTheWait(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	a, b := single("a", wish{Nodes: 2}), single("b", wish{Nodes: 3})
	m := newMachine(now, a, func() uint64 { return 1 })
	m.Up(now, b)
	m.Tick(now)
	m.Tick(now.Add(contradictionTime - time.Millisecond))
	require.NoError(t, m.judge.verdict)
	m.Down(now.Add(contradictionTime), peerOf(b.Member))
	m.Tick(now.Add(contradictionTime))
	require.NoError(t, m.judge.verdict, "it has passed")

	now = now.Add(time.Hour)
	m.Up(now, b)
	m.Tick(now)
	require.NoError(t, m.judge.verdict, "it has just come back")
	m.Tick(now.Add(contradictionTime))
	require.ErrorIs(t, m.judge.verdict, ErrDiffer)
	require.EqualError(t, m.judge.verdict, "--nodes is 2 here and 3 on b/0: start every machine with the same command and version")
	m.Up(now, single("c", wish{Nodes: 2}))
	require.Nil(t, m.proposer.run, "it forms no View after that")
}

// The workers of a machine have one node rank. Those of two may have different ones.
func TestNodeRanksThatDiffer(t *testing.T) {
	self, other := single("a", wish{Nodes: 2}), single("a", wish{Nodes: 2, NodeRank: 1})
	other.Name, other.Local = "a/1", 1
	require.Equal(t, []string{"the node rank of a is 0 here and 1 on a/1"}, contradictions(self, []candidate{other}))
	require.Empty(t, contradictions(self, []candidate{single("b", wish{Nodes: 2, NodeRank: 1})}))
}

// A process with a View ignores strangers.
func TestStrangersDoNotEndAJob(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	m := newMachine(now, single("a", wish{Nodes: 1}), func() uint64 { return 1 })
	m.Tick(now)
	require.NotNil(t, m.learner.held)
	m.Up(now, single("b", wish{Nodes: 3}))
	m.Tick(now)
	m.Tick(now.Add(time.Hour))
	require.NoError(t, m.judge.verdict)
}

// A process that all seeds rejected stops waiting, even if a seed has ended since.
// One that has met others keeps waiting.
func TestRejectionIsRemembered(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	for _, met := range []bool{false, true} {
		a := &Agent{status: newStatus(collective.Member{}), cfg: Config{Log: slog.New(slog.DiscardHandler)}}
		a.machine = newMachine(now, single("a", wish{Nodes: 3}), func() uint64 { return 1 })
		a.seeds(now, []Seed{{Addr: "b:1", Problem: "has a different key", Rejected: true}}, true)
		a.seeds(now.Add(contradictionTime/2), []Seed{{Addr: "b:1", Problem: "refused the connection"}}, false)
		if met {
			a.machine.Up(now, single("c", wish{Nodes: 3}))
		}
		a.machine.Tick(now.Add(contradictionTime))
		require.Equal(t, !met, a.machine.judge.verdict != nil)
		if !met {
			require.EqualError(t, a.machine.judge.verdict, "b:1 has a different key")
		}
	}
}

// Agents with different settings detect that they differ, and so does a third agent.
func TestAgentsThatDiffer(t *testing.T) {
	noLeak(t)
	a := start(t, Config{Member: member("vm0", 0, 1), Nodes: 3, Version: "v1"})
	seed := []string{a.Addr().String()}
	agents := []*Agent{a, start(t, Config{Member: member("vm1", 0, 1), Nodes: 3, Version: "v2", Join: seed}), start(t, Config{Member: member("vm2", 0, 1), Nodes: 3, Version: "v1", Join: seed})}
	for i, want := range []string{"the version is v1 here and v2 on vm1/0", "the version is v2 here and v1 on vm0/0", "the version is v1 here and v2 on vm1/0"} {
		_, err := agents[i].View(soon(t))
		require.ErrorIs(t, err, ErrDiffer)
		require.ErrorContains(t, err, want)
	}
}

// The metas of other versions identify their process.
func TestMetaOfOtherVersions(t *testing.T) {
	c := single("a", wish{Nodes: 2, Version: "v7", Rank0: "x"})
	c.Addrs = nil
	later := append(encodeMeta(c), "what later versions say"...)
	later[0] = metaVersion + 1
	got, err := decodeMeta(later)
	require.NoError(t, err)
	require.Equal(t, candidate{c.Member, wish{Format: metaVersion + 1, Nodes: 2, Version: "v7"}}, got)

	got, err = decodeMetaAs(metaVersion+1, encodeMeta(c))
	require.NoError(t, err, "a later version reads this one")
	require.Equal(t, candidate{c.Member, wish{Format: metaVersion, Nodes: 2, Version: "v7"}}, got)

	w := &writer{}
	w.byte(1)
	w.num(2)
	w.member(c.Member)
	got, err = decodeMeta(w.b)
	require.NoError(t, err)
	require.Equal(t, candidate{c.Member, wish{Format: 1, Nodes: 2}}, got)
	w.b[0] = 0
	_, err = decodeMeta(w.b)
	require.ErrorIs(t, err, errWire)
	require.False(t, newMachine(time.Now(), c, nil).census.concerns(got), "it is not asked for Views")
	require.Equal(t, collective.Worker, got.Role)
}

package status

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/query"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/trace"
)

// record returns the record of a rank whose last call has been in progress for tookMs and
// waits for rank waitsFor; for no rank if that is negative.
func record(step uint64, tookMs float64, waitsFor int) *trace.Record {
	now := time.Unix(1e9, 0)
	r := &trace.Record{Taken: now, Calls: []trace.Call{{Call: "Barrier()", Seq: 1, Step: step - 1, Began: now, Done: true}, {Call: "AllReduce()", Seq: 2, Step: step, Began: now, TookMs: tookMs}}}
	if waitsFor >= 0 {
		r.Waiting = &trace.Waiting{Rank: waitsFor, Cause: "late to call", ForMs: tookMs}
	}
	return r
}

// A Status combines the ranks' answers: which ranks are silent and why, the newest step,
// and the chain of ranks that wait for each other.
func TestStatusOfAnswers(t *testing.T) {
	v := collective.View{Epoch: 3, Job: 0xab}
	for _, name := range []string{"n/0", "n/1", "n/2", "n/3"} {
		v.Members = append(v.Members, collective.Member{Name: name, Node: "n"})
	}
	status := func(answers ...*crew.RankAnswer) *Status {
		return newStatus(v, query.NewRoll(v, v.Members[:3]), answers, Job{})
	}
	s := status(&crew.RankAnswer{PID: 10, Record: record(5, 9000, 1)}, &crew.RankAnswer{PID: 11, Record: record(4, 8000, 2)}, &crew.RankAnswer{PID: 12}, nil)
	require.Equal(t, "00000000000000ab", s.Job)
	require.EqualValues(t, 3, s.Epoch)
	require.Equal(t, 4, s.Size)
	require.EqualValues(t, 5, s.Step, "of the newest call of any rank")
	require.EqualValues(t, 4, s.Ranks[1].Step)
	require.Equal(t, "AllReduce()", s.Ranks[0].Call.Call)
	require.Equal(t, 10, s.Ranks[0].PID)
	require.Equal(t, "it has no group yet", s.Ranks[2].Silent)
	require.Equal(t, 12, s.Ranks[2].PID)
	require.True(t, s.Ranks[2].Alive)
	require.False(t, s.Ranks[3].Alive)
	require.Contains(t, s.Ranks[3].Silent, "gossip considers it dead")
	require.Equal(t, &trace.Chain{Ranks: []int{0, 1, 2}, Why: "it has no group yet"}, s.Chain)

	s = status(&crew.RankAnswer{Record: record(5, 9000, 3)}, nil, nil, nil)
	require.Equal(t, []int{0, 3}, s.Chain.Ranks)
	require.Equal(t, s.Ranks[3].Silent, s.Chain.Why)
	require.Contains(t, s.Ranks[1].Silent, "no answer within 2s")

	s = status(&crew.RankAnswer{Record: record(5, 9000, 7)}, nil, nil, nil)
	require.Equal(t, "it is not in the view", s.Chain.Why, "an answer may name a rank that does not exist")

	s = status(&crew.RankAnswer{Record: record(5, 1, -1)}, nil, nil, nil)
	require.Nil(t, s.Chain, "no rank waits")

	empty := newStatus(collective.View{}, query.NewRoll(collective.View{}, nil), nil, Job{})
	require.Equal(t, &Status{Ranks: []Rank{}}, empty, "as JSON the list is [], not null")
}

// The answer of a rank may have no calls.
func TestStatusOfARankWithoutCalls(t *testing.T) {
	v := collective.View{Members: []collective.Member{{Name: "n/0", Node: "n"}}}
	s := newStatus(v, query.NewRoll(v, v.Members), []*crew.RankAnswer{{Record: &trace.Record{}}}, Job{})
	require.Nil(t, s.Ranks[0].Call)
	require.Zero(t, s.Ranks[0].Step)
	require.Empty(t, s.Ranks[0].Silent)
	require.NotNil(t, s.Ranks[0].Record)
}

package trace

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// call returns AllReduce number seq of a record, begun the given milliseconds
// after start.
func call(seq uint64, began float64, waits ...Wait) Call {
	return Call{Call: "AllReduce()", Kind: "AllReduce", Seq: seq, Began: start.Add(time.Duration(began * 1e6)), TookMs: 1, Done: true, Waits: waits}
}

func record(rank int, node string, calls ...Call) *Record {
	return &Record{Rank: rank, Node: node, Taken: start.Add(time.Minute), Calls: calls}
}

func TestSkews(t *testing.T) {
	for _, c := range []struct {
		name    string
		records []*Record
		want    []Skew
	}{
		{"nothing", []*Record{nil, record(1, "a")}, []Skew{{}, {}}},
		{"the longest wait of a call counts, calls add up", []*Record{
			record(0, "a", call(1, 0, Wait{2, 30, 0}), call(2, 40, Wait{2, 5, 0})),
			record(1, "a", call(1, 10, Wait{2, 20, 0}), call(2, 40, Wait{2, 4, 1})),
			record(2, "a", call(1, 30), call(2, 45)),
		}, []Skew{{}, {}, {LateMs: 35, SlowMs: 1, Calls: 2}}},
		{"a rank that has not called", []*Record{record(0, "a", call(1, 0, Wait{1, 700, 0})), record(1, "a")},
			[]Skew{{}, {LateMs: 700, Calls: 1}}},
		{"a rank without a record", []*Record{record(0, "a", call(1, 0, Wait{1, 700, 0})), nil},
			[]Skew{{}, {LateMs: 700, Calls: 1}}},
		{"late only until it began, with a common clock", []*Record{
			record(0, "a", call(1, 0, Wait{1, 50, 0})), record(1, "a", call(1, 10)),
		}, []Skew{{}, {LateMs: 10, SlowMs: 40, Calls: 1}}},
		{"different clocks are not compared", []*Record{
			record(0, "a", call(1, 0, Wait{1, 50, 0})), record(1, "b", call(1, 10)),
		}, []Skew{{}, {LateMs: 50, Calls: 1}}},
		{"its own waiting does not count as slow", []*Record{
			record(0, "a", call(1, 0, Wait{1, 0, 50})), record(1, "a", call(1, 0, Wait{2, 50, 0})), record(2, "a", call(1, 50)),
		}, []Skew{{}, {}, {LateMs: 50, Calls: 1}}},
		{"calls between two ranks are left out", []*Record{
			record(0, "a", Call{Kind: "Send", Seq: 1, Waits: []Wait{{1, 50, 0}}}), record(1, "a", call(1, 0)),
		}, []Skew{{}, {}}},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, Skews(c.records)) })
	}
}

func TestChains(t *testing.T) {
	waits := func(rank, whom int, ms float64) *Record {
		r := record(rank, "a", Call{Call: "Barrier()", Seq: 3, Step: 2})
		r.Waiting = &Waiting{whom, "late to call", ms}
		return r
	}
	why := func(rank int) string { return fmt.Sprintf("nothing known about %d", rank) }
	idle := record(2, "a", call(9, 0))
	for _, c := range []struct {
		name    string
		records []*Record
		want    *Chain
	}{
		{"no waits", []*Record{idle, nil}, nil},
		{"not noticeably", []*Record{waits(0, 1, 49), nil}, nil},
		{"in no call", []*Record{waits(0, 1, 100), waits(1, 2, 90), idle},
			&Chain{[]int{0, 1, 2}, "it has not been in a call for 60 s; its last was AllReduce() #9 of step 0"}},
		{"the longest", []*Record{waits(0, 2, 100), waits(1, 0, 200), idle},
			&Chain{[]int{1, 0, 2}, "it has not been in a call for 60 s; its last was AllReduce() #9 of step 0"}},
		{"no answer", []*Record{waits(0, 1, 100), nil}, &Chain{[]int{0, 1}, "nothing known about 1"}},
		{"rank too large", []*Record{waits(0, 17, 100)}, &Chain{[]int{0, 17}, "nothing known about 17"}},
		{"negative rank", []*Record{waits(0, -5, 100)}, &Chain{[]int{0}, "it has been in Barrier() #3 for 0 and waits for no rank"}},
		{"a cycle", []*Record{waits(0, 1, 100), waits(1, 0, 90)}, &Chain{[]int{0, 1, 0}, "they wait for each other"}},
		{"no call at all", []*Record{waits(0, 1, 100), record(1, "a")}, &Chain{[]int{0, 1}, "it has made no call yet"}},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, Chains(c.records, why)) })
	}
}

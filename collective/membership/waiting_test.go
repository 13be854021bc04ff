package membership

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

func TestWaitingAsALine(t *testing.T) {
	two := make([]collective.Member, 2)
	for _, test := range []struct {
		w      Waiting
		waited time.Duration
		want   string
	}{
		{Waiting{Present: two, Workers: 4, MissingNodes: 1, Seeds: []Seed{{Addr: "10.0.0.1:7946", Problem: "refused the connection"}}}, 20 * time.Second,
			"waiting for 1 more machine (2 of 4 workers have joined, 20 s): 10.0.0.1:7946 refused the connection"},
		{Waiting{Present: two, Workers: 3, Missing: []Slot{{"vm", 1}}}, 0, "waiting for worker 1 on vm (2 of 3 workers have joined)"},
		{Waiting{Present: two, Workers: 12, MissingNodes: 2, Missing: []Slot{{"a", 0}, {"a", 1}, {"a", 2}, {"a", 3}, {"a", 4}, {"a", 5}}}, 3 * time.Minute,
			"waiting for 2 more machines, worker 0 on a, worker 1 on a, worker 2 on a, worker 3 on a, 2 more workers (2 of 12 workers have joined, 3 min)"},
		{Waiting{Present: two, Workers: 2, Unanswered: []string{"vm/0", "vm/1"}, Notes: []string{"a note"}}, 150 * time.Second,
			"waiting for an answer from vm/0, vm/1 (2 of 2 workers have joined, 2 min 30 s): a note"},
		{Waiting{Present: two, Workers: 4, MissingNodes: 1, Trying: []string{"10.0.0.1:7946", "b:1"}}, 2 * time.Second,
			"waiting for 1 more machine (2 of 4 workers have joined, 2 s): no answer yet from 10.0.0.1:7946, b:1"},
		{Waiting{Present: two, Workers: 2, Connecting: true, Notes: []string{"a note"}}, 2 * time.Second,
			"waiting for connections between the workers (2 of 2 workers have joined, 2 s): a note"},
		{Waiting{Present: two[:1], Workers: 1, Visitors: []string{"10.0.0.9 tried to join with a different key"}, Differ: []string{"--nodes is 2 here and 3 on b"}}, 0,
			"waiting for agreement (1 of 1 worker has joined): 10.0.0.9 tried to join with a different key; --nodes is 2 here and 3 on b"},
	} {
		require.Equal(t, test.want, test.w.After(test.waited))
	}
}

package membership

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadVisitor(t *testing.T) {
	for line, want := range map[string]string{
		"failed to receive: no installed keys could decrypt the message from=10.0.0.9:4711":                         "10.0.0.9 tried to join with a different key: give both the same key file",
		"failed to receive: encryption is configured but remote state is not encrypted from=[::ffff:10.0.0.9]:4711": "10.0.0.9 tried to join without a key: give both the same key file",
		"failed to receive: remote state is encrypted and encryption is not configured from=[fd00::9]:4711":         "fd00::9 has a key, and this process has none: give both the same key file",
		"discarding stream with unacceptable label \"a\\nb\": from=10.0.0.9:4711":                                   "",
		"discarding stream with unacceptable label \"\\xc2\\x03\": from=10.0.0.9:4711":                              "",
		"discarding stream with unacceptable label \"" + strings.Repeat("x", 200) + "\": from=10.0.0.9:4711":        `10.0.0.9 looks for another cluster, "` + strings.Repeat("x", 60) + `": give all the same --cluster`,
		"discarding stream with unacceptable label \"\": from=10.0.0.9:4711":                                        "",
		"discarding stream with unacceptable label \"a from=b\": from=10.0.0.9:4711":                                `10.0.0.9 looks for another cluster, "a from=b": give all the same --cluster`,
		"discarding stream with unacceptable label x: from=10.0.0.9:4711":                                           "",
		"failed to receive: EOF from=10.0.0.9:4711":                                                                 "",
		"no installed keys could decrypt the message from=10.0.0.9:4711":                                            "",
		"failed to receive: no installed keys could decrypt the message":                                            "",
		"failed to receive: no installed keys could decrypt the message from=somewhere":                             "",
	} {
		v, ok := readVisitor(line)
		require.Equal(t, want != "", ok, line)
		if ok {
			require.Equal(t, want, v.String())
		}
	}
}

// Each visitor is reported once, and only a few of them.
func TestVisitorsAreBounded(t *testing.T) {
	s := newStatus(single("a", wish{}).Member)
	at := netip.MustParseAddr("10.0.0.1")
	v := visitor{from: at, problem: "knocked"}
	require.True(t, s.visited(v))
	require.False(t, s.visited(v))
	for range 100 {
		v.from = v.from.Next()
		s.visited(v)
	}
	w, _ := s.wait(Waiting{})
	require.Len(t, w.Visitors, maxVisitors)

	v.problem = "has another name for a cluster each time"
	require.False(t, s.visited(v), "strangers write one line")
	v.from, v.problem, v.key = at, "has another key", true
	require.True(t, s.visited(v), "it replaces what is known of its address")
	v.from = v.from.Next()
	require.True(t, s.visited(v))
	v.from = netip.MustParseAddr("10.0.0.200")
	require.True(t, s.visited(v), "and what matters less")
	w, _ = s.wait(Waiting{})
	require.Len(t, w.Visitors, maxVisitors)
	require.Contains(t, w.Visitors, "10.0.0.200 has another key")
}

// A visitor with a key ends the wait of a process without one, unless that process
// has found others or holds a View.
func TestVisitorsWithAKey(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	v := visitor{problem: "has a key", keyless: true}
	oneOfTwo := single("a", wish{Nodes: 1}) // needs no other machine
	oneOfTwo.LocalSize = 2
	for _, test := range []struct {
		self candidate
		up   []candidate
		want bool
	}{
		{single("a", wish{Nodes: 2}), nil, true},
		{single("a", wish{Nodes: 3}), []candidate{single("b", wish{Nodes: 3})}, false},
		{single("a", wish{Nodes: 1}), nil, false},
		{oneOfTwo, nil, false},
	} {
		m := newMachine(now, test.self, func() uint64 { return 1 })
		for _, c := range test.up {
			m.Up(now, c)
		}
		m.Tick(now)
		m.Refuse(v)
		require.Equal(t, test.want, m.judge.verdict != nil)
	}
}

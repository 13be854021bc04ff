package status

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

func listed(cluster, job, node string, gossip ...string) launch.Listing {
	l := launch.Listing{Started: time.Unix(1e9, 0), Command: "ringtrain train " + cluster, Cluster: cluster, Job: job, KeyFile: "/" + cluster + ".key", Node: node}
	for i, addr := range gossip {
		l.Workers = append(l.Workers, launch.Listed{Local: i, Gossip: addr, Process: launch.Self()})
	}
	return l
}

func TestFind(t *testing.T) {
	a := listed("a", "1", "n-1", "127.0.0.1:1", "127.0.0.1:2")
	b := listed("b", "2", "n-2", "127.0.0.1:3")
	b2 := listed("b", "2", "n-3", "127.0.0.1:4")    // another launcher of b
	early := listed("b", "", "n-4", "127.0.0.1:5")  // has no view yet
	mpi := listed("c", "3", "n-5", "127.0.0.1:6")   // two processes of mpirun
	second := listed("c", "", "n-5", "127.0.0.1:7") // on one node
	second.Workers[0].Local = 1
	for _, c := range []struct {
		name    string
		args    string
		cluster string
		jobs    []launch.Listing
		seeds   string // or
		err     string
		key     string
	}{
		{name: "the only one", jobs: []launch.Listing{a}, seeds: "127.0.0.1:1 127.0.0.1:2", key: "/a.key"},
		{name: "none", err: "no job of yours is running on this machine; add the HOST:PORT"},
		{name: "several", jobs: []launch.Listing{a, b}, err: "2 jobs are running on this machine; choose one by its address:\nADDRESS"},
		{name: "two parts", jobs: []launch.Listing{b, b2}, seeds: "127.0.0.1:3 127.0.0.1:4", key: "/b.key"},
		{name: "mpirun", jobs: []launch.Listing{mpi, second}, seeds: "127.0.0.1:6 127.0.0.1:7", key: "/c.key"},
		{name: "--cluster", jobs: []launch.Listing{a, b}, cluster: "b", seeds: "127.0.0.1:3", key: "/b.key"},
		{name: "another --cluster", jobs: []launch.Listing{a}, cluster: "b", err: "no job of cluster b of yours"},
		{name: "by name", jobs: []launch.Listing{a, b}, args: "a", seeds: "127.0.0.1:1 127.0.0.1:2", key: "/a.key"},
		{name: "by name of two", jobs: []launch.Listing{a, b, early}, args: "b", err: "2 jobs on this machine are called b; choose one by its address:\n"},
		{name: "no such name", jobs: []launch.Listing{a}, args: "z", err: `"z": no job of yours on this machine has that cluster name; use the HOST:PORT`},
		{name: "known address", jobs: []launch.Listing{a, b}, args: "127.0.0.1:2", seeds: "127.0.0.1:2 127.0.0.1:1", key: "/a.key"},
		{name: "known by name", jobs: []launch.Listing{a, b}, args: "localhost:2", seeds: "localhost:2 127.0.0.1:1 127.0.0.1:2", key: "/a.key"},
		{name: "unknown address", jobs: []launch.Listing{a}, args: "127.0.0.2:2 10.0.0.1:7946", seeds: "127.0.0.2:2 10.0.0.1:7946"},
		{name: "not an address", args: "127.0.0.1:1 b", err: `must be HOST:PORT, where one of its processes gossips, not "b"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			job, err := Find(t.Context(), strings.Fields(c.args), c.cluster, c.jobs)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.seeds, strings.Join(job.Seeds, " "))
			require.Equal(t, c.key, job.KeyFile)
		})
	}
	_, err := Find(t.Context(), nil, "", []launch.Listing{a, b, b2})
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 4)
	require.Regexp(t, `^127.0.0.1:1  a +2  +2001-09-\d\d \d\d:\d\d:\d\d  ringtrain train a$`, lines[2])
	require.Regexp(t, `^127.0.0.1:3  b +2 `, lines[3], "of both launchers")

	a.Command = "ringtrain train '\t' '\n'"
	_, err = Find(t.Context(), nil, "", []launch.Listing{a, b})
	require.Len(t, strings.Split(err.Error(), "\n"), 4)
	require.ErrorContains(t, err, "  ringtrain train ' ' ' '\n")
}

// The reason for a rank's silence depends on what this machine and gossip know.
func TestSilence(t *testing.T) {
	l := listed("a", "1", "n-1", "127.0.0.1:1", "127.0.0.1:2")
	l.Workers[1].Process = launch.Identify(1 << 30) // no process
	job := Job{Parts: []launch.Listing{l}}
	for _, c := range []struct {
		node  string
		local int
		alive bool
		want  string
	}{
		{"n-1", 0, false, "is running"},
		{"n-1", 1, true, "dead: process 1073741824 has ended"},
		{"n-2", 0, true, "no answer within 2s: stopped, hanging or unreachable; check on n-2"},
		{"n-2", 0, false, "gossip considers it dead: stopped, dead or unreachable; check on n-2"},
	} {
		why, stopped, _ := silence(collective.Member{Node: c.node, Local: c.local}, c.alive, job)
		require.Contains(t, why, c.want)
		require.False(t, stopped)
	}
}

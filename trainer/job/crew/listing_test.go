//go:build unix

package crew

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// ownRegistry gives this test, and its child processes, a registry of jobs of their own.
func ownRegistry(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv("TMPDIR", dir)
}

// only returns the only listed job, nil if none is.
func only(t *testing.T) *launch.Listing {
	t.Helper()
	listings, err := launch.Listings()
	require.NoError(t, err)
	if len(listings) == 0 {
		return nil
	}
	require.Len(t, listings, 1)
	return &listings[0]
}

// A job is listed from its first worker's gossip address until its end. The entry changes
// when the last worker gossips and when the job has an id, and not in between.
func TestListing(t *testing.T) {
	ownRegistry(t)
	l := newJobListing(cluster.Config{Cluster: "c", Node: "n", Nodes: 2, KeyFile: "/k"}, 3, "ringtrain train", "/out", func(text string) { t.Error(text) })
	for local := range 3 {
		l.started(local, os.Getpid())
	}
	require.Nil(t, only(t), "no process could reach it yet")
	l.ready(1, "127.0.0.1:2")
	entry := only(t)
	require.Equal(t, []string{"c", "n", "/k", "ringtrain train", "/out"}, []string{entry.Cluster, entry.Node, entry.KeyFile, entry.Command, entry.Out})
	require.Equal(t, launch.Self(), entry.Launcher)
	require.Equal(t, 2, entry.Nodes)
	require.Equal(t, launch.Listed{Local: 1, Gossip: "127.0.0.1:2", Process: launch.Self()}, entry.Workers[1])

	l.ready(0, "127.0.0.1:1")
	require.Empty(t, only(t).Workers[0].Gossip, "each write is a file and a rename")
	l.ready(2, "127.0.0.1:3")
	for local, addr := range []string{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"} {
		require.Equal(t, addr, only(t).Workers[local].Gossip)
	}
	require.Empty(t, only(t).Job)
	l.agreed("ab")
	require.Equal(t, "ab", only(t).Job)
	l.regrouped("c.1")
	l.started(2, 1)
	l.ready(2, "127.0.0.1:4")
	entry = only(t)
	require.Equal(t, "c", entry.Cluster)
	require.Equal(t, "c.1", entry.Gossip)
	require.Equal(t, launch.Listed{Local: 2, Gossip: "127.0.0.1:4", Process: launch.Identify(1)}, entry.Workers[2])
	l.end()
	require.Nil(t, only(t))
	l.agreed("cd")
	require.Nil(t, only(t), "an event after the end lists nothing")
}

// A job of one worker is complete at once.
func TestListingOfOneWorker(t *testing.T) {
	ownRegistry(t)
	l := newJobListing(cluster.Config{Cluster: "c"}, 1, "", "", nil)
	defer l.end()
	l.ready(0, "127.0.0.1:1")
	require.Equal(t, "127.0.0.1:1", only(t).Workers[0].Gossip)
	dir, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, dir, only(t).Directory)
}

// A job that cannot be listed still runs. The user gets one line about it.
func TestListingFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	t.Setenv("XDG_RUNTIME_DIR", file)
	t.Setenv("TMPDIR", file)
	var warnings []string
	l := newJobListing(cluster.Config{}, 2, "", "", func(text string) { warnings = append(warnings, text) })
	l.ready(0, "127.0.0.1:1")
	l.ready(1, "127.0.0.1:2")
	l.agreed("ab")
	l.end()
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0], "this job is not listed, so ringtrain members and status need its address: ")
	require.NotContains(t, warnings[0], "\n")
}

func TestOneLine(t *testing.T) {
	require.Equal(t, "a; b", oneLine(errors.Join(errors.New("a"), errors.New("b"))))
}

package crew

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// A job survives the death of a worker by a signal, once it has begun. What other workers do not
// report as a survived loss, the launcher names.
func TestSurvivors(t *testing.T) {
	dead := launch.Exit{Name: "worker 1", Pid: 7, Code: -1, Signal: syscall.SIGKILL}
	show := &screenOf{}
	l := heardBy(show, nil)
	require.False(t, l.survivors.spare(dead), "the job has not begun")
	l.onLine(0, event.Encode(&event.View{}))
	require.False(t, l.survivors.spare(launch.Exit{Name: "worker 1", Code: 1}), "it has said why it failed")
	require.True(t, l.survivors.spare(dead))
	require.Equal(t, []launch.Exit{dead}, l.survivors.unnamed())

	root := launch.Exit{Name: "worker 0", Code: 1}
	lost := event.Failed{Name: "vm/0", Code: 1, Error: "rank 1 (vm/1) failed"}
	l.onLine(0, event.Encode(&lost))
	require.ErrorContains(t, l.verdict(launch.Outcome{Root: &root}, nil, nil), "worker 1 (pid 7) was killed by signal 9 (killed); it was vm/1")
	lost.Error = "the disk is full"
	l.onLine(0, event.Encode(&lost))
	require.ErrorContains(t, l.verdict(launch.Outcome{Root: &root}, nil, nil), "worker 0 (vm/0): the disk is full")
	spared := dead
	spared.Spared = true
	require.NoError(t, l.verdict(launch.Outcome{Exits: []launch.Exit{spared}}, nil, nil))

	survived := &event.Lost{Rank: 1, Node: "vm/1", Left: 3}
	l.onLine(0, event.Encode(survived))
	require.Contains(t, show.events, event.Event(survived))
	require.Empty(t, l.survivors.unnamed())
	require.True(t, l.survivors.spare(dead), "a worker may report it before the launcher knows")
	require.Empty(t, l.survivors.unnamed())
}

package status

import (
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/query"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// A suspended process is reported as stopped, whether gossip considers it alive or not.
func TestStoppedWorker(t *testing.T) {
	child := exec.Command("sleep", "60")
	require.NoError(t, child.Start())
	defer func() {
		_ = child.Process.Kill()
		_ = child.Wait()
	}()
	pid := child.Process.Pid
	l := listed("a", "1", "n-1", "127.0.0.1:1", "127.0.0.1:2")
	l.Workers[1].Process = launch.Identify(pid)
	job := Job{Parts: []launch.Listing{l}}
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
	_, err := syscall.Wait4(pid, nil, syscall.WUNTRACED, nil)
	require.NoError(t, err)

	for _, alive := range []bool{true, false} {
		why, stopped, its := silence(collective.Member{Node: "n-1", Local: 1}, alive, job)
		require.Contains(t, why, "stopped: process ")
		require.True(t, stopped)
		require.Equal(t, pid, its)
	}
	require.NoError(t, job.AllStopped([]string{"127.0.0.1:1", "127.0.0.1:2"}), "the other one can answer")
	require.NoError(t, job.AllStopped([]string{"127.0.0.1:2", "10.0.0.1:7946"}), "a process on another machine may answer")
	require.ErrorContains(t, job.AllStopped([]string{"127.0.0.1:2"}), "are suspended; kill -CONT "+strconv.Itoa(pid)+" resumes them")
	r := query.NewRoll(collective.View{}, []collective.Member{{Name: "n-1/0", Node: "n-1"}, {Name: "n-1/1", Node: "n-1", Local: 1}})
	job.Inspect(&r)
	require.False(t, r.Members[0].Stopped)
	require.True(t, r.Members[1].Stopped)
}

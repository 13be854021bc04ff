package crew

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/launch"
)

// told keeps what a launcher tells the user.
type told struct {
	nowhere
	lines []string
}

func (d *told) Log(_ string, line []byte) { d.lines = append(d.lines, string(line)) }

// A launcher whose processes are all suspended says so once, at the second look, and again
// after they have run in between.
func TestSuspendedWorkers(t *testing.T) {
	job := launch.Start(t.Context(), launch.Options{})
	defer func() {
		job.Stop(nil)
		job.Wait()
	}()
	p, err := job.Run(launch.Command{Name: "worker 0", Path: "/bin/sleep", Args: []string{"600"}})
	require.NoError(t, err)
	show := &told{}
	l := &launcher{show: show, running: map[string]*launch.Process{"worker 0": p}}
	l.looking = time.AfterFunc(time.Hour, func() {})
	defer l.looking.Stop()
	l.over = true // so that only this test looks
	signal := func(sig syscall.Signal, want launch.State) {
		require.NoError(t, syscall.Kill(p.Pid(), sig))
		require.Eventually(t, func() bool { return launch.Identify(p.Pid()).State() == want }, time.Minute, time.Millisecond)
	}
	l.lookForSuspension()
	for times := range 2 {
		signal(syscall.SIGSTOP, launch.Stopped)
		l.lookForSuspension()
		require.Len(t, show.lines, times, "a debugger may suspend it for a moment")
		l.lookForSuspension()
		l.lookForSuspension()
		require.Len(t, show.lines, times+1)
		require.Equal(t, fmt.Sprintf("warning: all processes of this job on this machine are suspended; kill -CONT %d resumes them", p.Pid()), show.lines[times])
		signal(syscall.SIGCONT, launch.Alive)
		l.lookForSuspension()
	}
}

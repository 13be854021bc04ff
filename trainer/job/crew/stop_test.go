//go:build unix

package crew

import (
	"bufio"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// listen opens a port to which the workers of a test connect while they live.
func listen(t *testing.T) *net.TCPListener {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	require.NoError(t, l.SetDeadline(time.Now().Add(long)))
	return l
}

// accept returns the connections of n workers that have reported that they are ready.
func accept(t *testing.T, l net.Listener, n int) (conns []net.Conn) {
	for range n {
		conn, err := l.Accept()
		require.NoError(t, err)
		require.NoError(t, conn.SetDeadline(time.Now().Add(long)))
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		line, err := bufio.NewReader(conn).ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ready\n", line)
	}
	return conns
}

// Ctrl-C stops the workers after their step. The job has not failed.
func TestInterrupt(t *testing.T) {
	r := run(t, on(t, "train", 3))
	r.hellos(3)
	r.signals <- os.Interrupt
	end := r.end()
	require.NoError(t, end.Err)
	require.Equal(t, os.Interrupt, end.Signal)
	require.False(t, end.Forced)
	require.Contains(t, r.lines, "notice: stopping")
	require.IsType(t, &event.Stopped{}, r.events[len(r.events)-1])
}

// A signal before the job has formed stops it, though workers fail because others have
// left. No worker is started after it.
func TestInterruptBeforeTheJobForms(t *testing.T) {
	c := on(t, "train", 2)
	c.Place.Nodes = 2
	r := run(t, c)
	r.line("2 workers here of 2 machines")
	r.signals <- syscall.SIGTERM
	end := r.end()
	require.NoError(t, end.Err)
	require.Equal(t, syscall.SIGTERM, end.Signal)

	c.Place.Nodes = 1
	r = run(t, c)
	r.signals <- os.Interrupt // perhaps before any worker
	require.NoError(t, r.end().Err)
}

// A server that is started after the stop signal was never asked to stop, and reports no
// progress. The watchdog ignores it.
func TestServerStartedAfterASignal(t *testing.T) {
	l := &launcher{
		Crew: Crew{Workers: 1, Servers: 1}, exe: "/bin/sh", show: nowhere{}, job: launch.Start(t.Context(), launch.Options{}), joining: newJoining(),
		running: map[string]*launch.Process{}, asked: true, begun: true, watchdog: watchdog{"worker 0": {}, "server 1": {}},
	}
	_, err := l.startWorker(1)
	require.NoError(t, err)
	l.onLine(1, []byte(`{"event":"ready"}`))
	l.job.Wait()
	l.exits.Wait()
	require.Equal(t, watchdog{"worker 0": {}}, l.watchdog)
}

// The second signal kills workers that ignore everything, without waiting for stallTime.
func TestInterruptTwice(t *testing.T) {
	r := run(t, on(t, "deaf", 2))
	pids := r.hellos(2)
	r.signals <- os.Interrupt
	r.line("notice: stopping")
	r.signals <- syscall.SIGTERM
	end := r.end()
	require.ErrorIs(t, end.Err, ErrTwice)
	require.True(t, end.Forced)
	require.Equal(t, syscall.SIGTERM, end.Signal)
	for _, h := range pids {
		require.ErrorIs(t, syscall.Kill(h.PID, 0), syscall.ESRCH, "no worker is left")
	}
}

// A worker that fails after a signal makes the job fail with what it lost.
func TestFailureAfterASignal(t *testing.T) {
	r := run(t, on(t, "slow", 1))
	pid := r.hellos(1)[0].PID
	r.signals <- os.Interrupt
	r.line("worker 0: asked")
	require.NoError(t, syscall.Kill(pid, syscall.SIGTERM)) // the worker's second signal
	end := r.end()
	require.ErrorContains(t, end.Err, "lost the last checkpoint")
	require.False(t, end.Forced)
	require.Equal(t, os.Interrupt, end.Signal)
}

// A signal to one worker stops the job as well. The launcher received none, so its error
// says that a worker did.
func TestAWorkerIsInterrupted(t *testing.T) {
	r := run(t, on(t, "train", 2))
	require.NoError(t, syscall.Kill(r.hellos(2)[1].PID, syscall.SIGTERM))
	end := r.end()
	require.Equal(t, ErrElsewhere, end.Err)
	require.Nil(t, end.Signal)
	require.True(t, end.Begun)
}

//go:build unix

package launch_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/launch"
)

// play returns the command of a worker that plays a part.
func play(name, part string, env ...string) launch.Command {
	return launch.Command{Name: name, Path: os.Args[0], Env: append(env, envPart+"="+part)}
}

func run(t *testing.T, j *launch.Job, c launch.Command) *launch.Process {
	t.Helper()
	p, err := j.Run(c)
	require.NoError(t, err)
	return p
}

// patience returns short timeouts for tests that wait for a job to end.
func patience() launch.Options {
	return launch.Options{Grace: 100 * time.Millisecond, Term: 200 * time.Millisecond}
}

func TestAllSucceed(t *testing.T) {
	j := launch.Start(t.Context(), launch.Options{})
	var lines []string
	c := play("worker 0", "ok")
	c.Stdout = func(line []byte) { lines = append(lines, string(line)) }
	p := run(t, j, c)
	run(t, j, play("worker 1", "ok"))
	got := j.Wait()
	require.NoError(t, got.Err())
	require.Nil(t, got.Root)
	require.Len(t, got.Exits, 2)
	require.Equal(t, []string{"done"}, lines)

	e, ok := p.Exit()
	require.True(t, ok)
	require.Equal(t, got.Exits[0], e)
	require.Equal(t, "worker 0", e.Name)
	require.Equal(t, p.Pid(), e.Pid)
	require.Positive(t, e.At)
	require.Equal(t, got, j.Wait(), "a second Wait returns the same")

	_, err := j.Run(play("late", "ok"))
	require.ErrorIs(t, err, launch.ErrOver)
	require.ErrorIs(t, j.Signal(syscall.SIGUSR1), launch.ErrOver)
	j.Stop(nil)
}

func TestNoWorkers(t *testing.T) {
	require.Equal(t, launch.Outcome{Exits: []launch.Exit{}}, launch.Start(t.Context(), launch.Options{}).Wait())
}

func TestFirstFailureEndsTheOthers(t *testing.T) {
	b := newBeacon(t)
	j := launch.Start(t.Context(), patience())
	run(t, j, play("worker 0", "patient", b.env()))
	b.next()
	failing := run(t, j, play("worker 1", "three"))
	<-failing.Done()
	_, err := j.Run(play("worker 2", "ok"))
	require.ErrorIs(t, err, launch.ErrEnding)
	require.ErrorContains(t, err, "worker 2")

	got := j.Wait()
	require.Equal(t, "worker 1", got.Root.Name)
	require.Equal(t, 3, got.Root.Code)
	require.Equal(t, []string{"cannot continue"}, got.Root.LastLines)
	require.True(t, got.Exits[0].ByUs)
	require.Equal(t, syscall.SIGTERM, got.Exits[0].Signal)
	require.EqualError(t, got.Err(), fmt.Sprintf("worker 1 (pid %d) exited with code 3", failing.Pid()))
	var failure *launch.ExitError
	require.ErrorAs(t, got.Err(), &failure)
	require.Equal(t, *got.Root, failure.Exit)
}

// The peers of a killed worker exit on their own. The killed worker is the root cause.
func TestKilledWorkerIsTheCause(t *testing.T) {
	b := newBeacon(t)
	j := launch.Start(t.Context(), launch.Options{})
	address := make(chan string, 1)
	first := play("worker 0", "victim", b.env())
	first.Stdout = func(line []byte) { address <- string(line) }
	run(t, j, first)
	victim := b.next()
	env := envPeer + "=" + <-address
	for i := 1; i <= 2; i++ {
		run(t, j, play("worker "+strconv.Itoa(i), "peer", b.env(), env))
		b.next()
	}
	require.NoError(t, syscall.Kill(victim.pid, syscall.SIGKILL))
	got := j.Wait()
	require.EqualError(t, got.Err(), fmt.Sprintf("worker 0 (pid %d) was killed by signal 9 (killed)", victim.pid))
	for _, e := range got.Exits[1:] {
		require.Equal(t, 1, e.Code)
		require.False(t, e.ByUs, "within the grace period, they were not asked to end")
		require.Equal(t, []string{"lost a peer"}, e.LastLines)
	}
}

func TestWorkerIgnoringSIGTERMIsKilled(t *testing.T) {
	b := newBeacon(t)
	j := launch.Start(t.Context(), patience())
	run(t, j, play("deaf", "deaf", b.env()))
	deaf := b.next()
	begin := time.Now()
	j.Stop(errors.New("enough"))
	got := j.Wait()
	deaf.requireGone(t, long)
	require.GreaterOrEqual(t, time.Since(begin), patience().Term)
	require.Equal(t, syscall.SIGKILL, got.Exits[0].Signal)
	require.True(t, got.Exits[0].ByUs)
	require.Nil(t, got.Root)
	require.EqualError(t, got.Err(), "the job was stopped: enough")
}

// A stopped process handles SIGTERM only after it is continued.
func TestStoppedWorkerEnds(t *testing.T) {
	b := newBeacon(t)
	j := launch.Start(t.Context(), launch.Options{})
	run(t, j, play("saver", "saver", b.env()))
	saver := b.next()
	require.NoError(t, syscall.Kill(saver.pid, syscall.SIGSTOP))
	j.Stop(nil)
	got := j.Wait()
	require.Equal(t, 75, got.Exits[0].Code)
	require.ErrorIs(t, got.Err(), launch.ErrStopped)
}

func TestGrandchildrenEndToo(t *testing.T) {
	b := newBeacon(t)
	j := launch.Start(t.Context(), patience())
	run(t, j, play("careless", "careless", b.env()))
	people := b.meet("careless", "deaf")
	require.NoError(t, people["careless"].conn.Close())
	require.Equal(t, 3, j.Wait().Exits[0].Code)
	people["deaf"].requireGone(t, long)

	j = launch.Start(t.Context(), patience())
	run(t, j, play("wrapper", "wrapper", b.env()))
	people = b.meet("wrapper", "tethered")
	j.Stop(nil)
	j.Wait()
	people["wrapper"].requireGone(t, long)
	people["tethered"].requireGone(t, long)
}

func TestContextEndsTheJob(t *testing.T) {
	b := newBeacon(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	j := launch.Start(ctx, launch.Options{})
	for i := range 3 {
		run(t, j, play("worker "+strconv.Itoa(i), "patient", b.env()))
	}
	people := []sighting{b.next(), b.next(), b.next()}
	cause := errors.New("the user pressed Ctrl-C")
	cancel(cause)
	got := j.Wait()
	require.ErrorIs(t, got.Err(), cause)
	require.Nil(t, got.Root)
	for i, e := range got.Exits {
		require.True(t, e.ByUs)
		require.Equal(t, syscall.SIGTERM, e.Signal, "%v", e)
		people[i].requireGone(t, long)
	}
}

// A signal from Job.Signal is not a failure and sets no deadline.
func TestSignalIsPassedOn(t *testing.T) {
	b := newBeacon(t)
	j := launch.Start(t.Context(), launch.Options{})
	for range 2 {
		run(t, j, play("", "saver", b.env()))
		b.next()
	}
	require.NoError(t, j.Signal(syscall.SIGTERM))
	got := j.Wait()
	require.Nil(t, got.Root)
	require.NoError(t, got.Cause)
	for _, e := range got.Exits {
		require.Equal(t, 75, e.Code)
		require.True(t, e.ByUs)
		require.Equal(t, os.Args[0], e.Name)
	}
	require.ErrorContains(t, got.Err(), "exited with code 75")
}

func TestProgramThatCannotStart(t *testing.T) {
	j := launch.Start(t.Context(), launch.Options{})
	_, err := j.Run(launch.Command{Name: "worker 0", Path: "/no/such/program"})
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "worker 0")
	run(t, j, play("worker 1", "ok"))
	require.NoError(t, j.Wait().Err(), "the failed Run does not affect the job")
}

func TestEnvironmentAndDirectory(t *testing.T) {
	t.Setenv("COLOUR", "red")
	dir := t.TempDir()
	var got string
	c := play("worker", "where", "COLOUR=blue")
	c.Dir = dir
	c.Stdout = func(line []byte) { got = string(line) }
	j := launch.Start(t.Context(), launch.Options{})
	run(t, j, c)
	require.NoError(t, j.Wait().Err())
	require.True(t, strings.HasSuffix(got, " blue"), got)
	require.Contains(t, got, dir[strings.LastIndex(dir, "/"):])
}

// A worker that is spared, and one that Kill ends, can be replaced while others run.
func TestReplaceWorkers(t *testing.T) {
	b := newBeacon(t)
	j := launch.Start(t.Context(), patience())
	over := make(chan launch.Outcome, 1)
	stays := run(t, j, play("worker 0", "patient", b.env()))
	b.next()
	go func() { over <- j.Wait() }()
	c := play("server", "patient", b.env())
	c.Spare = func(launch.Exit) bool { return true }
	first := run(t, j, c)
	b.next()
	require.NoError(t, syscall.Kill(first.Pid(), syscall.SIGKILL))
	<-first.Done()
	second := run(t, j, c)
	b.next()
	other := launch.Start(t.Context(), patience())
	require.ErrorContains(t, other.Kill(second), "another job")
	other.Stop(nil)
	other.Wait()
	require.NoError(t, j.Kill(second))
	<-second.Done()
	require.NoError(t, j.Kill(stays))
	got := <-over
	require.NoError(t, got.Err())
	require.Len(t, got.Exits, 3)
	require.True(t, got.Exits[1].Spared)
	require.False(t, got.Exits[1].ByUs)
	require.True(t, got.Exits[2].ByUs)
	require.ErrorIs(t, j.Kill(stays), launch.ErrOver)
}

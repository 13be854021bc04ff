//go:build unix

package crew

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// long is longer than any job of these tests takes on a loaded machine.
const long = 30 * time.Second

// A running is a crew that a test has launched, and the Display that records it.
type running struct {
	t       *testing.T
	ctx     context.Context
	signals chan os.Signal
	ended   chan struct{}
	err     error // of Launch, once ended is closed

	mu     sync.Mutex
	events []event.Event
	lines  []string // of Log and Notice
	news   chan struct{}
}

// Emit implements event.Sink.
func (r *running) Emit(e event.Event) { r.record(func() { r.events = append(r.events, e) }) }

// Log implements Display.
func (r *running) Log(name string, line []byte) {
	r.record(func() { r.lines = append(r.lines, name+": "+string(line)) })
}

// Notice implements Display.
func (r *running) Notice(text string) {
	r.record(func() { r.lines = append(r.lines, "notice: "+text) })
}

func (r *running) record(add func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	add()
	close(r.news)
	r.news = make(chan struct{})
}

// until waits until seen returns true of what was shown so far.
func (r *running) until(what string, seen func(events []event.Event, lines []string) bool) {
	r.t.Helper()
	for {
		r.mu.Lock()
		ok, news := seen(r.events, r.lines), r.news
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-news:
		case <-r.ended:
			require.Fail(r.t, "ended before "+what, "%v\n%s", r.err, strings.Join(r.lines, "\n"))
		case <-r.ctx.Done():
			require.Fail(r.t, "waited too long for "+what, "%s", strings.Join(r.lines, "\n"))
		}
	}
}

// hellos waits for n workers that have a group, and returns them by number.
func (r *running) hellos(n int) map[int]hello {
	r.t.Helper()
	all := map[int]hello{}
	r.until("all workers have met", func(events []event.Event, _ []string) bool {
		for _, e := range events {
			if h, ok := e.(*hello); ok {
				all[h.Local] = *h
			}
		}
		return len(all) == n
	})
	return all
}

// line waits for a line that contains text.
func (r *running) line(text string) {
	r.t.Helper()
	r.until(text, func(_ []event.Event, lines []string) bool { return len(linesWith(lines, text)) > 0 })
}

// wait returns the error of Launch.
func (r *running) wait() error {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-r.ctx.Done():
		require.Fail(r.t, "the crew does not end", "%s", strings.Join(r.lines, "\n"))
	}
	return r.err
}

// end returns the *EndError of Launch.
func (r *running) end() *EndError {
	r.t.Helper()
	var end *EndError
	require.ErrorAs(r.t, r.wait(), &end)
	return end
}

// on returns a Crew of workers that play part on this machine, with a registry of jobs
// of its own.
func on(t *testing.T, part string, workers int) Crew {
	ownRegistry(t)
	t.Setenv("GOMAXPROCS", "")
	t.Setenv(cluster.EnvKeyFile, "")
	place := Local()
	c, err := place.Config(workers, io.Discard)
	require.NoError(t, err)
	return Crew{
		Workers: workers, Cores: 4, Place: c, Kinds: kindsOfTests(), Stopping: "stopping", Announce: true,
		Environ: func(int) []string { return []string{envPart + "=" + part} },
	}
}

// run launches c.
func run(t *testing.T, c Crew) *running {
	ctx, cancel := context.WithTimeout(t.Context(), long)
	r := &running{t: t, ctx: ctx, signals: make(chan os.Signal, 4), ended: make(chan struct{}), news: make(chan struct{})}
	c.Display, c.Signals = r, r.signals
	go func() {
		defer close(r.ended)
		r.err = c.Launch(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-r.ended
	})
	return r
}

// freePort returns an address of loopback with a port that no process uses.
func freePort(t *testing.T) netip.AddrPort {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return netip.MustParseAddrPort(l.Addr().String())
}

// A job that succeeds shows its events in order, and nothing else. Each worker knows its
// place, and gets its share of the cores.
func TestLaunch(t *testing.T) {
	c := on(t, "steps", 3)
	c.Place.Streams, c.Cores, c.Place.Bind = 2, 7, freePort(t)
	r := run(t, c)
	require.NoError(t, r.wait())
	all := r.hellos(3)
	for local, h := range all {
		require.Equal(t, local, h.Rank)
		require.Equal(t, 3, h.Size)
		require.Equal(t, 2, h.Streams)
		require.Equal(t, c.Place.Cluster, h.Cluster)
		require.Equal(t, c.Place.Node, h.Node)
		if local == 0 {
			require.Equal(t, c.Place.Bind.String(), h.Bind)
		} else {
			require.Equal(t, "127.0.0.1:0", h.Bind, "two workers cannot listen on one port")
		}
		require.Equal(t, "2", h.Threads, "7 cores for 3 workers")
	}
	var steps []int
	for _, e := range r.events {
		switch e := e.(type) {
		case *event.View:
			require.Len(t, e.Members, 3)
			require.Equal(t, c.Place.Cluster, e.Cluster)
			require.Equal(t, r.lines[0], ": cluster "+e.Cluster+" on "+e.Gossip+", 3 workers")
		case *event.Step:
			steps = append(steps, e.Step)
		case *event.Result:
			require.Equal(t, []int{1, 2, 3}, steps, "the order of a worker's events")
			steps = append(steps, -1)
		}
	}
	require.Equal(t, []int{1, 2, 3, -1}, steps)
	require.Len(t, r.lines, 1)
}

// The view of the largest job is one event.
func TestLargestView(t *testing.T) {
	r := run(t, on(t, "wide", 1))
	require.NoError(t, r.wait())
	last, ok := r.events[len(r.events)-1].(*event.View)
	require.True(t, ok, "it was shown as text")
	require.Len(t, last.Members, MaxRanks)
	require.Len(t, r.lines, 1, "where the job can be joined")
}

// Workers get a share of the cores, and no restartable sequences, unless the user decides
// otherwise.
func TestRuntimeEnviron(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	c := on(t, "steps", 2)
	c.Cores = 1
	for _, set := range []struct{ threads, tunables, wantThreads, wantTunables string }{
		{"", "", "2", "glibc.pthread.rseq=0"},
		{"5", "glibc.malloc.check=1", "5", "glibc.malloc.check=1:glibc.pthread.rseq=0"},
		{"", "glibc.pthread.rseq=1", "2", "glibc.pthread.rseq=1"},
	} {
		t.Setenv("GOMAXPROCS", set.threads)
		t.Setenv("GLIBC_TUNABLES", set.tunables)
		r := run(t, c)
		require.NoError(t, r.wait())
		h := r.hellos(2)[1]
		require.Equal(t, set.wantThreads, h.Threads)
		require.Equal(t, set.wantTunables, h.Tunables)
	}
}

// Two jobs run on one machine at a time. Neither finds the other's workers, and both are
// listed while they run.
func TestTwoJobs(t *testing.T) {
	c := on(t, "train", 2)
	a := run(t, c)
	c.Place.Cluster, c.Command = OwnCluster(), "second"
	b := run(t, c)
	first, second := a.hellos(2), b.hellos(2)
	require.NotEqual(t, first[0].Job, second[0].Job)
	require.Equal(t, []int{2, 2}, []int{first[0].Size, second[1].Size})

	listings, err := launch.Listings()
	require.NoError(t, err)
	require.Len(t, listings, 2)
	for _, l := range listings {
		pids := map[int]hello{}
		for _, w := range l.Workers {
			require.Equal(t, launch.Alive, w.Process.State())
			require.NotEmpty(t, w.Gossip)
			pids[w.Process.PID] = hello{}
		}
		of := first
		if l.Command == "second" {
			of = second
		}
		require.Contains(t, pids, of[0].PID)
		require.Contains(t, pids, of[1].PID)
		require.Equal(t, of[0].Cluster, l.Cluster)
	}
	for _, r := range []*running{a, b} {
		r.signals <- os.Interrupt
		require.NoError(t, r.end().Err)
	}
	listings, err = launch.Listings()
	require.NoError(t, err)
	require.Empty(t, listings, "an entry goes with its job")
}

// Under mpirun each process launches a single worker. Rank 0 shows the job.
func TestLaunchedByOthers(t *testing.T) {
	c := on(t, "steps", 2)
	c.Place.Cluster = OwnCluster()
	c.Process.Launched = &cluster.Launched{Rank: 0, Size: 2, LocalSize: 2, Nodes: 1}
	first := run(t, c)
	first.line(": cluster " + c.Place.Cluster + " on ")
	addr := strings.TrimSuffix(strings.TrimPrefix(first.lines[0], ": cluster "+c.Place.Cluster+" on "), ", 2 workers")
	c.Place.Local, c.Place.Join = 1, []string{addr}
	c.Process.Launched = &cluster.Launched{Rank: 1, Size: 2, Local: 1, LocalSize: 2, Nodes: 1}
	second := run(t, c)
	require.NoError(t, first.wait())
	require.NoError(t, second.wait())
	require.Equal(t, map[int]int{0: 2}, map[int]int{first.hellos(1)[0].Local: first.hellos(1)[0].Size})
	require.Empty(t, second.events)
	require.Empty(t, second.lines)
}

// A worker that dies before it joins ends the job, which does not wait for it. Its output
// is shown.
func TestWorkerFailsBeforeItJoins(t *testing.T) {
	r := run(t, on(t, "fail early", 3))
	end := r.end()
	require.Regexp(t, `^worker 1 \(pid \d+\) exited with code 3; it was \S+/1$`, end.Error())
	require.Equal(t, []string{"worker 1: no such device"}, linesWith(r.lines, "device"))
}

// A worker that ends without a failure, but has not joined, has done nothing. The job
// fails at once: it neither waits for the worker nor reports success.
func TestWorkerEndsBeforeItJoins(t *testing.T) {
	for local := range 2 {
		end := run(t, on(t, fmt.Sprint("skip ", local), 2)).end()
		require.Regexp(t, fmt.Sprintf(`^worker %d \(pid \d+\) exited with code 0 before it joined the job: `, local), end.Error())
		require.False(t, end.Usage)
	}
}

// A usage error of a worker is one of the job.
func TestWorkerReportsMistake(t *testing.T) {
	end := run(t, on(t, "usage", 1)).end()
	require.True(t, end.Usage)
	require.False(t, end.Begun)
	var worker *WorkerError
	require.ErrorAs(t, end, &worker)
	require.Equal(t, "worker 0", worker.Worker)
	require.Equal(t, event.Failed{Name: worker.Said.Name, Code: 2, Error: "--batch is too large"}, worker.Said)
}

// A job gives up on a machine that does not join, and says what is missing.
func TestJoinTimesOut(t *testing.T) {
	c := on(t, "time out", 1)
	c.Place.Nodes = 2
	r := run(t, c)
	end := r.end()
	require.Contains(t, end.Error(), "gave up after 50ms (--join-timeout) waiting for 1 more machine (1 of 2 workers have joined)")
	require.False(t, end.Begun)
	require.Contains(t, r.lines[0], "1 worker here of 2 machines; on the other machines: --join 127.0.0.1:")
}

// A worker that is killed in the middle of an event leaves half a line, which is shown
// as text. The job names the worker, and every survivor's flight record is saved.
func TestKilledWorker(t *testing.T) {
	dir := t.TempDir()
	c := on(t, "torn", 3)
	part := c.Environ
	c.Environ = func(local int) []string { return append(part(local), envDir+"="+dir) }
	r := run(t, c)
	end := r.end()
	require.True(t, end.Begun)
	require.Regexp(t, `^worker 1 \(pid \d+\) was killed by signal 9 \(killed\); it was \S+/1$`, end.Error())
	require.Contains(t, r.lines, `worker 1: {"event":"step","step":7,"lo`)
	for _, e := range r.events {
		require.NotEqual(t, "step", e.Kind())
	}
	require.Len(t, linesWith(r.lines, ": ranks 0, 2 lost rank 1 ("), 1, "one line for all survivors: %s", r.lines)
	for _, rank := range []int{0, 2} {
		records, err := filepath.Glob(filepath.Join(dir, fmt.Sprintf("flight-*-%d.json", rank)))
		require.NoError(t, err)
		require.Len(t, records, 1)
		require.Len(t, linesWith(r.lines, fmt.Sprintf("worker %d: ", rank), "flight record: "+records[0]), 1)
	}
}

// SIGQUIT to a worker saves its flight record. Then the Go runtime prints the goroutines
// and ends the process, as usual.
func TestQuitDumpsFlight(t *testing.T) {
	dir := t.TempDir()
	c := on(t, "train", 2)
	part := c.Environ
	c.Environ = func(local int) []string { return append(part(local), envDir+"="+dir) }
	c.Verbatim = true
	r := run(t, c)
	require.NoError(t, syscall.Kill(r.hellos(2)[1].PID, syscall.SIGQUIT))
	require.ErrorContains(t, r.end(), "worker 1 (pid ")
	require.Len(t, linesWith(r.lines, "worker 1: ", "flight record: "+dir), 1)
	require.NotEmpty(t, linesWith(r.lines, "worker 1: SIGQUIT: quit"))
	var lost *event.Lost
	for _, e := range r.events {
		if l, ok := e.(*event.Lost); ok {
			lost = l
		}
	}
	require.NotNil(t, lost, "a Verbatim crew shows each event about a lost rank")
	require.Equal(t, []int{1, 0}, []int{lost.Rank, lost.SeenBy})
}

// Workers of one machine share memory, except over TCP. A single worker shares none.
func TestSharedMemory(t *testing.T) {
	for _, x := range []struct {
		transport string
		workers   int
		want      int
	}{{cluster.TransportAuto, 2, 4}, {cluster.TransportTCP, 2, 0}, {cluster.TransportAuto, 1, 0}} {
		c := on(t, "share", x.workers)
		c.Place.Transport = x.transport
		r := run(t, c)
		require.NoError(t, r.wait())
		got := linesWith(r.lines, "shared")
		require.Len(t, got, x.workers)
		for _, line := range got {
			require.Contains(t, line, fmt.Sprintf("shared %d ", x.want), "%+v", x)
		}
	}
}

// A program that cannot be started is an error, and leaves no worker behind.
func TestCannotStart(t *testing.T) {
	c := on(t, "train", 2)
	c.Args = []string{strings.Repeat("x", 200<<10)} // longer than the kernel takes
	r := run(t, c)
	err := r.wait()
	require.ErrorContains(t, err, "start worker 0: ")
	require.False(t, errors.As(err, new(*EndError)), "nothing has started")
}

// The workers of a launcher that is killed end, too.
func TestLauncherIsKilled(t *testing.T) {
	ownRegistry(t)
	beacon := listen(t)
	launcher := exec.Command(os.Args[0])
	launcher.Env = append(os.Environ(), envPart+"=launcher", envBeacon+"="+beacon.Addr().String())
	require.NoError(t, launcher.Start())
	defer func() {
		_ = launcher.Process.Kill()
		_ = launcher.Wait()
	}()
	workers := accept(t, beacon, 2)
	require.NoError(t, launcher.Process.Kill())
	for _, conn := range workers {
		rest, _ := io.ReadAll(conn) // returns when the worker is gone
		require.Empty(t, rest)
		require.NoError(t, conn.Close())
	}
}

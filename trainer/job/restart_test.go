package job

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/secret"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// pidOf returns the process id of a process of the only job that runs, 0 if it is not known.
func pidOf(local int) int {
	jobs, _ := launch.Listings()
	for _, j := range jobs {
		for _, w := range j.Workers {
			if w.Local == local {
				return w.Process.PID
			}
		}
	}
	return 0
}

// killProcess kills a process with -9.
func killProcess(t *testing.T, pid int) {
	p, err := os.FindProcess(pid)
	if assert.NoError(t, err) {
		_ = p.Kill() // it may have ended, with the group that it was in
	}
}

// A killer kills servers at random moments, each as soon as it is listed with a new process.
type killer struct {
	t     *testing.T
	first int // of the servers
	count int // of the servers
	kills int // left
}

// run returns when all kills are done. It takes random times, so that a server dies in
// whatever it does: pushes, updates, writes, or while a group is formed.
func (k *killer) run(ctx context.Context) {
	last := map[int]int{}
	for k.kills > 0 {
		select {
		case <-time.After(time.Duration(rand.N(int64(40 * time.Millisecond)))):
		case <-ctx.Done():
			return
		}
		local := k.first + rand.IntN(k.count)
		if pid := pidOf(local); pid != 0 && pid != last[local] {
			last[local] = pid
			k.kills--
			killProcess(k.t, pid)
		}
	}
}

// A server whose group the workers have given up does not fail: they form another.
func TestServerOfAGroupGivenUp(t *testing.T) {
	groups := collectivetest.Local(t, 3)
	require.NoError(t, groups[0].Close())
	require.Error(t, new(crew.Worker).Attend(t.Context(), groups[1]), "the test needs a broken group")
	require.NoError(t, serveKept(t.Context(), new(crew.Worker), groups[2], optim.DefaultAdam()))
}

// Servers that are killed at random moments are started again. Each step is made once, and
// the weights are those of a run that nothing disturbs.
func TestServersRestart(t *testing.T) {
	kills := 4
	if collectivetest.Thorough() {
		kills = 100
	}
	for _, transport := range []string{cluster.TransportAuto, cluster.TransportTCP} {
		t.Run(transport, func(t *testing.T) {
			s, f := newShared(t)
			s.Servers, s.Transport, s.Steps, s.Every, s.Restarts = "2", transport, 1_000_000, 50, 10*kills
			s.Dir = filepath.Join(t.TempDir(), "run")
			signals := make(chan os.Signal, 1)
			ctx, cancel := context.WithCancel(t.Context())
			var killing sync.WaitGroup
			defer killing.Wait()
			defer cancel()
			h := &heard{on: afterStep(5, func() {
				killing.Go(func() {
					(&killer{t: t, first: s.Workers, count: 2, kills: kills}).run(ctx)
					signals <- os.Interrupt
				})
			})}
			o := s.share(t, h)
			o.Signals = signals
			_, err := runError(t, ctx, s.spec(), o)
			var end *crew.EndError
			require.ErrorAs(t, err, &end, h.said())
			require.NoError(t, end.Err, h.said())
			require.Equal(t, os.Interrupt, end.Signal)
			stopped := eventsOf[*event.Stopped](h)
			require.Len(t, stopped, 1, h.said())
			for i, e := range eventsOf[*event.Step](h) {
				require.Equal(t, i+1, e.Step, "each step is made once")
			}
			require.GreaterOrEqual(t, strings.Count(h.said(), "starting it again"), kills/2, h.said())
			require.Zero(t, h.count("peer_lost"), "training went on")

			f.Steps = stopped[0].Steps
			require.Equal(t, resultOf(t, run(t, f)).WeightsSHA256, hashOf(t, filepath.Join(s.Dir, weightsFile)), "%d steps", f.Steps)
			left, err := filepath.Glob(filepath.Join(os.TempDir(), "ringtrain-servers-*"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// Every worker reports a killed server, whatever carries its messages. The job goes on, and
// ends when the server is killed more often than it may be started again.
func TestServerKilledIsNamed(t *testing.T) {
	key := filepath.Join(t.TempDir(), "key")
	fresh := secret.New()
	require.NoError(t, secret.WriteFile(key, fresh))
	for name, change := range map[string]func(*sharedSpec){
		"shm":          func(*sharedSpec) {},
		"tcp":          func(s *sharedSpec) { s.Transport = cluster.TransportTCP },
		"shm with key": func(s *sharedSpec) { s.KeyFile = key },
		"tcp with key": func(s *sharedSpec) { s.Transport, s.KeyFile = cluster.TransportTCP, key },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "tcp" || name == "shm with key" {
				collectivetest.Slow(t)
			}
			s, _ := newShared(t)
			s.Servers, s.Steps, s.Restarts, s.ServerDir = "2", 1_000_000, 1, t.TempDir()
			change(&s)
			var mu sync.Mutex
			var killed time.Time
			var first int
			named := map[int]time.Duration{}
			h := &heard{}
			h.on = func(e event.Event) {
				mu.Lock()
				defer mu.Unlock()
				switch e := e.(type) {
				case *event.Step:
					pid := pidOf(3)
					if e.Step > 5 && pid != 0 && pid != first { // not killed yet, or started again
						first, killed = pid, time.Now()
						killProcess(t, pid)
					}
				case *event.Lost:
					if _, ok := named[e.SeenBy]; !ok && e.Again {
						named[e.SeenBy] = time.Since(killed)
						assert.Equal(t, 3, e.Rank)
					}
				}
			}
			o := s.share(t, h)
			o.Verbatim = true
			_, err := runError(t, t.Context(), s.spec(), o)
			require.ErrorContains(t, err, "server 3 (pid ")
			require.ErrorContains(t, err, "signal 9 (killed)")
			require.Equal(t, 1, strings.Count(h.said(), "starting it again"), h.said())
			require.Len(t, named, 2, "both workers")
			for rank, took := range named {
				t.Logf("rank %d named the server after %v", rank, took)
				require.Less(t, took, 10*time.Second)
			}
			files := namesIn(t, s.ServerDir)
			require.Empty(t, files, "the job removes what servers kept, and its lock")
		})
	}
}

// Two jobs cannot use one directory for servers, and only servers need one.
func TestServerDirRefused(t *testing.T) {
	s, _ := newShared(t)
	s.Servers, s.ServerDir = "2", t.TempDir()
	lock, err := launch.TakeLock(s.ServerDir, launch.LockOptions{Job: "other"})
	require.NoError(t, err)
	defer lock.Unlock()
	_, err = runError(t, t.Context(), s.spec(), s.share(t, new(heard)))
	var usage *crew.UsageError
	require.ErrorAs(t, err, &usage)
	require.ErrorContains(t, err, "--server-dir")
	require.ErrorContains(t, err, s.ServerDir)
	require.ErrorContains(t, err, "job other")

	// What the error about a lock of another machine advises is possible without --out.
	f := s.spec()
	f.Gradients.ServerDir = t.TempDir()
	elsewhere := launch.Self()
	elsewhere.Host += "2"
	writeLock(t, f.Gradients.ServerDir, elsewhere)
	_, _, err = claimServerDir(&f)
	require.ErrorContains(t, err, "add --force")
	f.Saving.Force = true
	require.NoError(t, f.Check())
	_, release, err := claimServerDir(&f)
	require.NoError(t, err)
	release()

	for want, change := range map[string]func(*Spec){
		"--server-dir needs server processes that":  func(f *Spec) { f.Gradients.Servers = Colocated },
		"--max-restarts must be at least 0, not -1": func(f *Spec) { f.Gradients.Restarts = -1 },
		"--server-dir has no use without restarts":  func(f *Spec) { f.Gradients.Restarts = 0 },
		"and this job has no server processes":      func(f *Spec) { f.Gradients.ServerDir, f.Gradients.Servers = "", Colocated },
		"no server processes that wait for all":     func(f *Spec) { f.Gradients.ServerDir, f.Gradients.Asynchrony.Quorum = "", 1 },
		"this job has no server processes that":     func(f *Spec) { f.Place.Transport = crew.TransportInProcess },
		"wait for all workers: leave it out":        func(f *Spec) { f.Strategy, f.Gradients.Servers = "allreduce", "" },
	} {
		f := served(t, "2")
		f.Gradients.ServerDir, f.Gradients.Restarts = "d", 1
		change(&f)
		_, err := runError(t, t.Context(), f, Options{})
		require.ErrorContains(t, err, want)
	}
}

// Servers are divided among machines; the first one has what is left.
func TestServersHere(t *testing.T) {
	for _, c := range []struct{ servers, nodes, first, other int }{
		{1, 1, 1, 0}, {4, 1, 4, 0}, {1, 2, 1, 0}, {2, 2, 1, 1}, {3, 2, 2, 1}, {5, 3, 3, 1}, {2, 3, 2, 0},
	} {
		f := served(t, "1")
		f.Gradients.Servers = string(rune('0' + c.servers))
		f.Place.Nodes = c.nodes
		require.Equal(t, c.first, serversHere(&f), "%+v", c)
		if c.nodes > 1 {
			f.Place.Join = []string{"a:1"}
			require.Equal(t, c.other, serversHere(&f), "%+v", c)
			require.Equal(t, c.servers, c.first+(c.nodes-1)*c.other)
		}
	}
}

// Directories of launchers that were killed are removed, others stay.
func TestTempServerDir(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	gone := launch.Self()
	gone.Start++ // another process had the number
	old := filepath.Join(os.TempDir(), "ringtrain-servers-"+gone.Tag()+".1")
	require.NoError(t, os.Mkdir(old, 0o700))
	first, err := tempServerDir()
	require.NoError(t, err)
	require.NoDirExists(t, old)
	second, err := tempServerDir()
	require.NoError(t, err)
	require.NotEqual(t, first, second)
	require.DirExists(t, first, "of a launcher that runs")
}

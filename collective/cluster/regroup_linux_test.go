package cluster_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// A process is one worker of a job, as seen from outside.
type process struct {
	*exec.Cmd
	t      *testing.T
	name   string
	orders io.WriteCloser
	lines  chan string
}

// long is more than any step needs on a loaded machine.
const long = 40 * time.Second

// spawn starts a worker.
func spawn(t *testing.T, c cluster.Config) *process { return spawnAs(t, c, "1", os.Args[0]) }

// spawnAs starts a kind of worker with a command.
func spawnAs(t *testing.T, c cluster.Config, kind string, command ...string) *process {
	p := &process{Cmd: exec.Command(command[0], command[1:]...), t: t, name: fmt.Sprintf("%s/%d", c.Node, c.Local), lines: make(chan string, 1000)}
	p.Env = append(os.Environ(), append(c.Environ(), envWorker+"="+kind)...)
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	p.orders, err = p.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(p.lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			t.Logf("%s: %s", p.name, in.Text())
			p.lines <- in.Text()
		}
	}()
	t.Cleanup(func() {
		_ = p.Process.Signal(syscall.SIGCONT)
		_ = p.Process.Kill()
		<-done
		_ = p.Wait()
	})
	return p
}

// job starts the workers of one machine and returns after their first reduction.
// Each joins all before it: if all joined the first and it were killed at once,
// gossip would not have introduced the others yet.
func job(t *testing.T, n int) []*process {
	c := cluster.Config{Cluster: t.Name(), Node: "m", LocalSize: n}
	var ps []*process
	for c.Local = range n {
		ps = append(ps, spawn(t, c))
		c.Join = append(c.Join[:c.Local:c.Local], ps[c.Local].expect("addr "))
	}
	for _, p := range ps {
		p.expectGroup(1, ps)
	}
	return ps
}

// expect reads lines until one begins with a text, and returns the rest of it.
func (p *process) expect(begin string) string {
	p.t.Helper()
	var before []string
	timeout := time.After(long)
	for {
		select {
		case line, ok := <-p.lines:
			require.True(p.t, ok, "%s ended before it said %q: %q", p.name, begin, before)
			if rest, ok := strings.CutPrefix(line, begin); ok {
				return rest
			}
			before = append(before, line)
		case <-timeout:
			require.Failf(p.t, "too late", "%s did not say %q: %q", p.name, begin, before)
		}
	}
}

// expectGroup waits until a group of these members had correct sums.
func (p *process) expectGroup(epoch int, members []*process) {
	p.t.Helper()
	var names []string
	for _, m := range members {
		names = append(names, m.name)
	}
	require.Equal(p.t, fmt.Sprintf("%d %d %s", epoch, len(members), strings.Join(names, ",")), p.expect("group "), "%s", p.name)
}

func (p *process) order(what string) {
	p.t.Helper()
	_, err := fmt.Fprintln(p.orders, what)
	require.NoError(p.t, err)
}

// without returns ps without some.
func without(ps []*process, some ...*process) []*process {
	return slices.DeleteFunc(slices.Clone(ps), func(p *process) bool { return slices.Contains(some, p) })
}

func TestKillAndRegroup(t *testing.T) {
	for _, victims := range [][]int{{2}, {0}, {4}, {1, 3}, {0, 1}} {
		t.Run(fmt.Sprint(victims), func(t *testing.T) {
			ps := job(t, 5)
			var dead []*process
			begin := time.Now()
			for _, v := range victims {
				dead = append(dead, ps[v])
				require.NoError(t, ps[v].Process.Kill())
			}
			left := without(ps, dead...)
			for _, p := range left {
				p.expect("broken ")
				line := p.expect("group ")
				require.Contains(t, line, fmt.Sprintf(" %d m/", len(left)), "%s", p.name)
			}
			took := time.Since(begin)
			t.Logf("killed %v: right sums of %d after %v", victims, len(left), took)
			require.Less(t, took, 3*time.Second)
			for _, p := range left {
				p.order("quit")
				require.NotEqual(t, "0", p.expect("end quit "))
			}
		})
	}
}

func TestCancelAndRegroup(t *testing.T) {
	ps := job(t, 5)
	for i, canceller := range []int{3, 0, 4, 1, 2} {
		begin := time.Now()
		ps[canceller].order("cancel")
		for _, p := range ps {
			p.expectGroup(2+i, ps)
		}
		t.Logf("%d cancelled: right sums of all after %v", canceller, time.Since(begin))
	}
}

func TestOneOfTwoIsNoMajority(t *testing.T) {
	ps := job(t, 2)
	require.NoError(t, ps[0].Process.Kill())
	said := ps[1].expect("end ")
	require.Contains(t, said, "minority")
	require.Contains(t, said, "1 of the 2 members of epoch 1 can be reached, 2 are needed; missing: m/0: repair the network or restart the job")
}

// A stopped process is left out, and gets an error that says so when it continues.
func TestZombieIsExpelled(t *testing.T) {
	collectivetest.Slow(t)
	ps := job(t, 5)
	zombie := ps[1]
	left := without(ps, zombie)
	begin := time.Now()
	require.NoError(t, zombie.Process.Signal(syscall.SIGSTOP))
	for _, p := range left {
		require.Contains(t, p.expect("broken "), "rank 1 (m/1)")
		p.expectGroup(2, left)
	}
	t.Logf("right sums of 4 after %v", time.Since(begin))
	ctx, cancel := context.WithDeadline(t.Context(), begin.Add(8*time.Second))
	defer cancel()
	<-ctx.Done()
	require.NoError(t, zombie.Process.Signal(syscall.SIGCONT))
	said := zombie.expect("end ")
	require.Contains(t, said, "expelled m/1: the job continues without this process")
	for _, p := range left {
		p.order("quit")
	}
	require.NotEqual(t, "0", left[0].expect("end quit "))
	for _, p := range left[1:] {
		for line := range p.lines {
			if strings.HasPrefix(line, "end") {
				require.Contains(t, line, "quit")
			}
		}
	}
}

// A member that agrees to a View and never connects is left out of the next one.
func TestMuteMemberIsLeftOut(t *testing.T) {
	ps := job(t, 4)
	ps[2].order("mute")
	ps[2].expect("mute")
	ps[1].order("cancel")
	left := without(ps, ps[2])
	for _, p := range left {
		p.expectGroup(3, left)
	}
}

//go:build gpu && cgo && linux

package ncclgroup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nccl"
)

// With this variable set, the test binary is a worker. "calls" makes calls of the
// Group. "graphs" launches graphs that contain a captured call, and "aside" does so
// with the call on a second stream. "held" still holds its graph when it asks the Group
// for the error. "table" makes the calls of the table.
const envWorker = "NCCLGROUP_TEST_WORKER"

// worker reduces until told otherwise, and regroups when something breaks. It prints
// one line per event and obeys commands: "die" kills it once it is inside NCCL, "quit"
// ends it.
func worker() int {
	ctx, quit := context.WithTimeout(context.Background(), 2*tableTime)
	defer quit()
	w := &laborer{dying: make(chan struct{})}
	go func() {
		in := bufio.NewScanner(os.Stdin)
		for in.Scan() && in.Text() == "die" {
			close(w.dying)
		}
		quit()
	}()
	if err := w.labor(ctx); ctx.Err() == nil {
		fmt.Println("end", err)
		return 1
	}
	fmt.Println("end quit")
	return 0
}

type laborer struct {
	*workplace
	engine *Engine
	dying  chan struct{}
	tally  tally
}

func (w *laborer) labor(ctx context.Context) error {
	c, _, err := cluster.FromEnv()
	if err != nil {
		return err
	}
	if w.workplace, err = open(c.Local); err != nil {
		return err
	}
	c.ConnectTime, c.Engine, c.Group.Order = 20*time.Second, w.make, collective.AnyOrder
	node, err := cluster.Join(ctx, c)
	if err != nil {
		return err
	}
	defer node.Close()
	fmt.Println("addr", node.Addr())
	g, err := node.Group(ctx)
	if err == nil && os.Getenv(envWorker) == "table" {
		return w.table(ctx, g)
	}
	for err == nil {
		if err = w.reduce(ctx, g); ctx.Err() != nil {
			return err
		}
		fmt.Println("broken", err)
		g, err = node.Regroup(ctx, g)
	}
	return err
}

// make is New on hardware that can kill this process.
func (w *laborer) make(ctx context.Context, v collective.View, base *collective.HostEngine) (collective.Engine, error) {
	c := Config{Device: w.device, Stream: w.stream, NCCL: Must, ConnectTime: 20 * time.Second}
	g, err := openGPU(ctx, c)
	if err != nil {
		return nil, errors.Join(err, base.Close())
	}
	w.engine, err = over(ctx, v, base, w.tally.on(&faulty{hardware: g, before: w.perhapsDie}), c)
	return w.engine, err
}

// table makes the calls of the table, prints how many there were, and waits for "quit".
func (w *laborer) table(ctx context.Context, g *collective.Group) error {
	calls, err := w.tally.table(ctx, w.workplace, g, true)
	if err != nil {
		return err
	}
	fmt.Println("table", calls)
	<-ctx.Done()
	return ctx.Err()
}

func (w *laborer) perhapsDie() error {
	select {
	case <-w.dying:
		fmt.Println("dying")
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
	default:
		return nil
	}
}

// reduce checks sums until a call fails. It prints a line after the first correct sum.
func (w *laborer) reduce(ctx context.Context, g *collective.Group) error {
	s := make([]int64, 1<<14)
	for i := range s {
		s[i] = int64(g.Rank() + 1)
	}
	v, err := put(w.workplace, s)
	if err != nil {
		return err
	}
	if err := g.AllReduce(ctx, v, collective.Sum); err != nil {
		return err
	}
	got, err := get[int64](w.workplace, v)
	if err != nil {
		return err
	}
	for _, x := range got {
		if x != int64(g.Size()*(g.Size()+1)/2) {
			return fmt.Errorf("wrong sum %d", x)
		}
	}
	if err := w.fractions(ctx, g); err != nil {
		return err
	}
	fmt.Println("group", g.Size())
	if os.Getenv(envWorker) != "calls" {
		return w.launch(ctx, g, v)
	}
	for err == nil {
		err = g.AllReduce(ctx, v, collective.Max)
	}
	return err
}

// fractions compares sums of float32 with sums of float64 on the host.
func (w *laborer) fractions(ctx context.Context, g *collective.Group) error {
	of := func(rank, i int) float64 { return float64((i*7919+rank*104729)%2001-1000) / 977 }
	s := make([]float32, 10007)
	for i := range s {
		s[i] = float32(of(g.Rank(), i))
	}
	v, err := put(w.workplace, s)
	if err != nil {
		return err
	}
	if err := g.AllReduce(ctx, v, collective.Sum); err != nil {
		return err
	}
	got, err := get[float32](w.workplace, v)
	if err != nil {
		return err
	}
	for i, x := range got {
		want, size := 0., 0.
		for rank := range g.Size() {
			want += float64(float32(of(rank, i)))
			size += math.Abs(of(rank, i))
		}
		if !(math.Abs(want-float64(x)) <= 1e-6*max(1, size)) {
			return fmt.Errorf("element %d is %v, on the host %v", i, x, want)
		}
	}
	return nil
}

// launch launches a graph without end and occupies the device's thread, as a run
// step does.
func (w *laborer) launch(ctx context.Context, g *collective.Group, v collective.Vector) error {
	call := collective.Call{Kind: collective.KindAllReduce, DType: collective.Int64, Op: collective.Max, Count: uint64(v.Len())}
	err := w.device.Do(ctx, func() error {
		queue := func() error { return w.engine.Queue(ctx, call, v, v) }
		if os.Getenv(envWorker) == "aside" {
			aside, err := w.aside(w.engine.Queued(ctx, call, v, v))
			if err != nil {
				return err
			}
			queue = aside
		}
		graph, err := w.stream.Capture(queue)
		if err != nil {
			return err
		}
		defer func() { _ = graph.Destroy() }()
		for ctx.Err() == nil && w.engine.Err() == nil {
			if err := w.perhapsDie(); err != nil {
				return err
			}
			if err := graph.Launch(w.stream); err != nil {
				return err
			}
			if err := w.stream.Sync(context.Background()); err != nil { // the watchdog ends it
				return err
			}
		}
		if os.Getenv(envWorker) == "held" {
			return g.Barrier(ctx)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return g.Barrier(ctx)
}

// aside returns a function that queues a call on a branch next to the stream. The
// branch stays until the process ends.
func (w *laborer) aside(call func(cuda.Stream) error) (func() error, error) {
	side, err := w.device.NewUrgentStream()
	if err != nil {
		return nil, err
	}
	event, err := w.device.NewEvent(false)
	if err != nil {
		return nil, err
	}
	return func() error {
		for _, step := range []func() error{
			func() error { return event.Record(w.stream) },
			func() error { return side.Wait(event) },
			func() error { return call(side) },
			func() error { return event.Record(side) },
			func() error { return w.stream.Wait(event) },
		} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// A process is a worker as seen from outside.
type process struct {
	*exec.Cmd
	t      *testing.T
	orders io.Writer
	lines  chan string
}

func spawn(t *testing.T, kind string, c cluster.Config, more ...string) *process {
	p := &process{Cmd: exec.Command(os.Args[0]), t: t, lines: make(chan string, 1000)}
	p.Env = append(append(os.Environ(), more...), append(c.Environ(), envWorker+"="+kind)...)
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
			t.Logf("%d: %s", c.Local, in.Text())
			p.lines <- in.Text()
		}
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-done
		_ = p.Wait()
	})
	return p
}

// expect reads lines until one begins with a text, and returns the rest of that line.
func (p *process) expect(begin string) string {
	p.t.Helper()
	return p.expectWithin(40*time.Second, begin)
}

func (p *process) expectWithin(limit time.Duration, begin string) string {
	p.t.Helper()
	timeout := time.After(limit)
	for {
		select {
		case line, ok := <-p.lines:
			require.True(p.t, ok, "the process ended before it printed %q", begin)
			if rest, found := strings.CutPrefix(line, begin); found {
				return rest
			}
		case <-timeout:
			require.Failf(p.t, "too late", "no %q", begin)
		}
	}
}

// jobs starts the ranks of a job, each with the variables that env returns for it.
func jobs(t *testing.T, kind string, ranks int, env func(rank int) []string) []*process {
	c := cluster.Config{Cluster: strings.ReplaceAll(t.Name(), "/", " "), Node: "m", LocalSize: ranks}
	var ps []*process
	for c.Local = range c.LocalSize {
		ps = append(ps, spawn(t, kind, c, env(c.Local)...))
		c.Join = append(c.Join[:c.Local:c.Local], ps[c.Local].expect("addr "))
	}
	return ps
}

// asHere returns the variables of a rank on this machine's devices. The emulator has a
// device for each rank and needs none.
func asHere(rank int) []string {
	v, err := nccl.GetVersion()
	if !real() || err != nil {
		return nil
	}
	return sharing(v, rank)
}

// quit ends processes that have passed their test.
func quit(t *testing.T, ps []*process) {
	for _, p := range ps {
		_, err := fmt.Fprintln(p.orders, "quit")
		require.NoError(t, err)
	}
}

// Processes get the correct sums, including those that share a device.
func TestProcesses(t *testing.T) {
	emulated(t)
	for _, n := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(n, " ranks"), func(t *testing.T) {
			ps := jobs(t, "calls", n, asHere)
			for _, p := range ps {
				require.Equal(t, fmt.Sprint(n), p.expect("group "))
			}
			quit(t, ps)
		})
	}
}

// A rank is killed inside a collective that the others wait in. They get an error that
// names it, and continue with a new communicator.
func TestKilledRank(t *testing.T) {
	emulated(t)
	for _, kind := range []string{"calls", "graphs", "aside", "held"} {
		for victim := range 3 {
			t.Run(fmt.Sprintf("%s, rank %d", kind, victim), func(t *testing.T) {
				ps := jobs(t, kind, 3, asHere)
				for _, p := range ps {
					require.Equal(t, "3", p.expect("group "))
				}
				_, err := fmt.Fprintln(ps[victim].orders, "die")
				require.NoError(t, err)
				ps[victim].expect("dying")
				begin := time.Now()
				left := append(ps[:victim:victim], ps[victim+1:]...)
				for _, p := range left {
					require.Contains(t, p.expect("broken "), fmt.Sprintf("rank %d (m/%d) failed", victim, victim))
				}
				require.Less(t, time.Since(begin), time.Second)
				t.Logf("all survivors know after %v", time.Since(begin))
				for _, p := range left {
					require.Equal(t, "2", p.expect("group "))
				}
				t.Logf("the survivors have correct sums after %v", time.Since(begin))
				quit(t, left)
			})
		}
	}
}

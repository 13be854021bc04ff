package shm_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/shm"
	"github.com/ringtrain/ringtrain/collective/tcp"
)

// envRank makes the test binary one rank of a job. Its value is
// RANK/SIZE/ELEMENTS/CALLS/ARENAS. The rank prints its address, reads those of all
// ranks, and reduces ELEMENTS elements. It makes CALLS calls and prints how long
// they took; if CALLS is 0, it continues until a call fails, and then see keep. The
// vectors of the first ARENAS ranks lie in Arenas. CALLS may also be one of the values
// below.
const envRank = "SHM_TEST_RANK"

// Values of CALLS with which ranks exchange messages instead; see exchange.
const (
	messagesOverSHM = -1 - iota
	messagesOverTCP
)

func worker(value string) error {
	var rank, size, n, most, arenaRanks int
	if _, err := fmt.Sscanf(value, "%d/%d/%d/%d/%d", &rank, &size, &n, &most, &arenaRanks); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	id := tcp.Identity{Cluster: "test", Name: fmt.Sprintf("n/%d", rank), Nonce: uint64(100 + rank)}
	connector := tcp.NewConnector(id)
	l, err := tcp.Listen(ctx, "127.0.0.1:0", id, connector)
	if err != nil {
		return err
	}
	defer l.Close()
	fmt.Println(l.Addr())
	v := collective.View{Job: 7, Epoch: 1, Self: rank}
	in := bufio.NewReader(os.Stdin)
	line, err := in.ReadString('\n')
	if err != nil {
		return err
	}
	for r, at := range strings.Fields(line) {
		v.Members = append(v.Members, collective.Member{Name: fmt.Sprintf("n/%d", r), Nonce: uint64(100 + r), Host: 1, Addrs: []netip.AddrPort{netip.MustParseAddrPort(at)}})
	}
	under, err := connector.Connect(ctx, v)
	if err != nil {
		return err
	}
	arenas, t := new(shm.Arenas), collective.Transport(under)
	if most != messagesOverTCP {
		t, err = shm.Join(ctx, v, under, shm.Options{Must: true, Arenas: arenas, Calibration: shm.Reading})
		if err != nil {
			return err
		}
	}
	g := collective.NewGroup(v, collective.OverTransport(v, t), collective.Options{})
	defer g.Close()
	switch {
	case most > 0:
		return measure(ctx, g, n, most)
	case most < 0:
		return exchange(ctx, g)
	}
	s := make([]int64, n)
	if rank < arenaRanks {
		mem, err := arenas.Alloc(8 * n)
		if err != nil {
			return err
		}
		at, err := collective.OfBytes(mem, collective.Int64)
		if err != nil {
			return err
		}
		s = collective.Elements[int64](at)
	}
	for calls := 0; ; calls++ {
		for i := range s {
			s[i] = int64(rank + i + calls)
		}
		if err := collective.AllReduce(ctx, g, s, collective.Sum); err != nil {
			var lost *collective.RankError
			if !errors.As(err, &lost) {
				return err
			}
			return keep(s, in, fmt.Sprint("broken ", lost.Rank, " ", err))
		}
		for i := range s {
			if want := int64(size*(size-1)/2 + size*(i+calls)); s[i] != want {
				return fmt.Errorf("call %d, element %d: %d, not %d", calls, i, s[i], want)
			}
		}
		if calls == min(100, 2+1<<22/n) {
			fmt.Println("running")
		}
	}
}

// keep overwrites the vector of a failed call, prints message, and waits for a line
// on in. Then it checks that no other rank has written to the vector.
func keep(s []int64, in *bufio.Reader, message string) error {
	for i := range s {
		s[i] = -1
	}
	fmt.Println(message)
	if _, err := in.ReadString('\n'); err != nil {
		return err
	}
	if i := slices.IndexFunc(s, func(x int64) bool { return x != -1 }); i >= 0 {
		return fmt.Errorf("another rank wrote %d to element %d after the call", s[i], i)
	}
	fmt.Println("kept")
	return nil
}

// measure prints how many nanoseconds the calls take.
func measure(ctx context.Context, g *collective.Group, n, calls int) error {
	s := make([]float32, n)
	if err := collective.AllReduce(ctx, g, s, collective.Max); err != nil {
		return err
	}
	begin := time.Now()
	for range calls {
		if err := collective.AllReduce(ctx, g, s, collective.Sum); err != nil {
			return err
		}
	}
	took := time.Since(begin)
	if err := g.Barrier(ctx); err != nil {
		return err
	}
	fmt.Println(took.Nanoseconds())
	return nil
}

// A process is one rank of a job, as its parent sees it.
type process struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

// job starts ranks that reduce n elements until a call fails. It returns when all
// ranks have made some calls. The vectors of the first ranks lie in Arenas.
func job(t *testing.T, size, n, arenaRanks int) []*process {
	ps := start(t, size, n, 0, arenaRanks)
	for r, p := range ps {
		require.True(t, p.out.Scan(), "rank %d", r)
		require.Equal(t, "running", p.out.Text(), "rank %d", r)
	}
	return ps
}

func start(t testing.TB, size, n, calls, arenaRanks int) []*process {
	ps := make([]*process, size)
	var addrs []string
	for r := range ps {
		p := &process{Cmd: exec.Command(os.Args[0])}
		p.Env = append(os.Environ(), fmt.Sprintf("%s=%d/%d/%d/%d/%d", envRank, r, size, n, calls, arenaRanks))
		p.Stderr = os.Stderr
		out, err := p.StdoutPipe()
		require.NoError(t, err)
		p.in, err = p.StdinPipe()
		require.NoError(t, err)
		p.out = bufio.NewScanner(out)
		require.NoError(t, p.Start())
		t.Cleanup(func() {
			_ = p.Process.Kill()
			_ = p.Wait()
		})
		ps[r] = p
		require.True(t, p.out.Scan())
		addrs = append(addrs, p.out.Text())
	}
	for _, p := range ps {
		_, err := fmt.Fprintln(p.in, strings.Join(addrs, " "))
		require.NoError(t, err)
	}
	return ps
}

// BenchmarkProcesses measures AllReduce between processes.
func BenchmarkProcesses(b *testing.B) {
	for _, size := range []int{2, 4, 8} {
		for _, bytes := range []int{4, 4 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 64 << 20} {
			b.Run(fmt.Sprintf("%d/%d", size, bytes), func(b *testing.B) {
				ps := start(b, size, bytes/4, b.N, 0)
				require.True(b, ps[0].out.Scan())
				took, err := strconv.Atoi(ps[0].out.Text())
				require.NoError(b, err)
				b.SetBytes(int64(bytes))
				b.ReportMetric(float64(took)/float64(b.N), "ns/call")
			})
		}
	}
}

// A load is what the ranks reduce: n elements, which lie in Arenas on the first
// arenaRanks ranks.
type load struct{ n, arenaRanks int }

// testEnd sends a signal to one rank of a job, each rank in turn. All other ranks
// name that rank with the error want, and no rank writes to their vectors
// afterwards. Unless slow tests are enabled, only one rank is stopped for each load.
func testEnd(t *testing.T, size int, end syscall.Signal, want error, loads ...load) {
	for victim := range size {
		for i, l := range loads {
			if end == syscall.SIGSTOP && victim != i%size && !collectivetest.Thorough() {
				continue
			}
			t.Run(fmt.Sprintf("rank %d, %d elements, %d ranks in arenas", victim, l.n, l.arenaRanks), func(t *testing.T) {
				if end == syscall.SIGSTOP {
					t.Parallel() // each takes seconds, most of them waiting
				}
				ps := job(t, size, l.n, l.arenaRanks)
				require.NoError(t, ps[victim].Process.Signal(end))
				others := slices.Delete(slices.Clone(ps), victim, victim+1)
				for _, p := range others {
					require.True(t, p.out.Scan())
					require.Regexp(t, fmt.Sprintf(`^broken %d .*%s`, victim, want), p.out.Text())
				}
				if end == syscall.SIGSTOP { // the stopped rank continues its call until it learns that the View is broken
					require.NoError(t, ps[victim].Process.Signal(syscall.SIGCONT))
					require.True(t, ps[victim].out.Scan())
					require.Regexp(t, `^broken `, ps[victim].out.Text())
				}
				for _, p := range others {
					_, err := fmt.Fprintln(p.in)
					require.NoError(t, err)
					require.True(t, p.out.Scan())
					require.Equal(t, "kept", p.out.Text())
				}
			})
		}
	}
}

// All other ranks name a rank that is killed during calls.
func TestKilledRankIsNamed(t *testing.T) {
	testEnd(t, 4, syscall.SIGKILL, collective.ErrLost, load{1, 0}, load{200_000, 0}, // shown, by copy
		load{600_000, 0}, load{600_000, 2}, // by read
		load{2000, 4}, load{600_000, 4}) // in place
}

// All other ranks name a rank that is stopped, after the same time as over TCP.
func TestStoppedRankIsNamed(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it takes seconds until a stopped rank counts as lost")
	}
	testEnd(t, 3, syscall.SIGSTOP, collective.ErrSilent, load{1, 0}, load{200_000, 0}, load{600_000, 0}, load{600_000, 3})
}

package tcp_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/tcp"
)

// connectView connects the nodes in a View of the given epoch.
func connectView(t testing.TB, nodes []*node, epoch uint64) ([]collective.View, []*tcp.Transport) {
	vs, made := views(nodes, epoch), make([]*tcp.Transport, len(nodes))
	var all sync.WaitGroup
	for r := range nodes {
		all.Go(func() {
			var err error
			made[r], err = nodes[r].connector.Connect(deadline(t), vs[r])
			assert.NoError(t, err)
		})
	}
	all.Wait()
	return vs, made
}

func message(v collective.View, seq uint64, payload []byte) *collective.Header {
	return &collective.Header{Job: v.Job, Epoch: v.Epoch, Seq: seq, Call: collective.Call{Kind: collective.KindBarrier}, Len: uint32(len(payload))}
}

// Close and Abort end a Send to a peer that reads nothing and a Recv from a peer that sends
// nothing, at any moment of the wait. They leave no descriptor open.
func TestEndDuringCalls(t *testing.T) {
	nodes := listen(t, 2)
	var before int
	for round := range uint64(40) {
		vs, made := connectView(t, nodes, 1+round)
		if round == 0 {
			before = openFiles(t)
		}
		payload := make([]byte, 8<<20)
		var sent, got error
		var all sync.WaitGroup
		all.Go(func() {
			for seq := uint64(1); sent == nil; seq++ {
				if sent = made[0].Post(1, message(vs[0], seq, payload), [][]byte{payload}); sent == nil {
					sent = made[0].Flush(context.Background())
				}
			}
		})
		all.Go(func() {
			into := make([]byte, 1<<20)
			got = made[0].Recv(context.Background(), 1, message(vs[0], 1, into), [][]byte{into})
		})
		select { // a different moment in each round; in some, the calls sleep
		case <-time.After(time.Duration(round%8) * time.Millisecond):
		case <-t.Context().Done():
		}
		begin := time.Now()
		cause := errors.New("enough")
		if round%2 == 0 {
			made[0].Abort(&collective.RankError{Rank: 0, Phase: "failed", Err: cause})
		} else {
			require.NoError(t, made[0].Close())
		}
		all.Wait()
		require.Less(t, time.Since(begin), 500*time.Millisecond, "round %d", round)
		for _, err := range []error{sent, got} {
			if round%2 == 0 {
				require.ErrorIs(t, err, cause)
			} else {
				require.ErrorIs(t, err, collective.ErrClosed)
			}
		}
		require.NoError(t, made[0].Close())
		require.NoError(t, made[1].Close())
		require.Error(t, made[0].Post(1, message(vs[0], 1, nil), nil))
	}
	require.LessOrEqual(t, openFiles(t), before)
}

// openFiles returns the number of open file descriptors.
func openFiles(t testing.TB) int {
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

// Neither signals that interrupt system calls nor a garbage collector that always runs
// change any byte.
func TestCallsUnderSignalsAndCollections(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	gs := groups(t, 3)
	stop := make(chan struct{})
	var disturb sync.WaitGroup
	disturb.Go(func() {
		tick := time.NewTicker(200 * time.Microsecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				assert.NoError(t, unix.Kill(os.Getpid(), unix.SIGURG)) // the signal that the runtime sends to its own threads
				runtime.GC()
			}
		}
	})
	collectivetest.Run(t, gs, func(ctx context.Context, g *collective.Group) {
		for i := range 60 {
			s := make([]int64, 1+i*5003)
			for k := range s {
				s[k] = int64(k * (g.Rank() + 1))
			}
			if !assert.NoError(t, collective.AllReduce(ctx, g, s, collective.Sum)) {
				return
			}
			for k := range s {
				if s[k] != int64(6*k) {
					assert.Equal(t, int64(6*k), s[k], "element %d of %d", k, len(s))
					return
				}
			}
		}
	})
	close(stop)
	disturb.Wait()
}

// A message in more pieces than one system call accepts arrives as it was sent.
func TestManyPieces(t *testing.T) {
	nodes := listen(t, 2)
	vs, made := connectView(t, nodes, 1)
	defer func() {
		for _, m := range made {
			assert.NoError(t, m.Close())
		}
	}()
	whole := make([]byte, 3000*7)
	for i := range whole {
		whole[i] = byte(i * 31)
	}
	var out, in [][]byte
	got := make([]byte, len(whole))
	for i := range 3000 {
		out = append(out, whole[i*7:(i+1)*7])
	}
	for lo, n := 0, 0; lo < len(got); lo, n = lo+n, n+1 { // pieces of 0, 1, 2 ... bytes
		in = append(in, got[lo:min(lo+n, len(got))])
		n = min(n, len(got)-lo)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for seq := uint64(1); seq <= 50; seq++ {
			assert.NoError(t, made[0].Send(deadline(t), 1, message(vs[0], seq, whole), out))
		}
	})
	for seq := uint64(1); seq <= 50; seq++ {
		clear(got)
		require.NoError(t, made[1].Recv(deadline(t), 0, message(vs[1], seq, whole), in))
		require.True(t, bytes.Equal(whole, got), "message %d", seq)
	}
	all.Wait()
}

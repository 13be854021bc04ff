package tcp

import (
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// monitorOf returns the monitor of rank 0 in a View of ranks on these machines, 10 s after the
// start. It has just heard some of the others.
func monitorOf(nodes string, heard ...int) *monitor {
	m := &monitor{peers: make([]peer, len(nodes)), started: time.Now().Add(-10 * time.Second), silence: silenceLimit, failed: make(chan struct{})}
	for r, node := range nodes {
		m.view.Members = append(m.view.Members, collective.Member{Name: string(node) + "/" + string(rune('0'+r)), Node: string(node)})
	}
	for _, r := range heard {
		m.peers[r].heard.Store(int64(10 * time.Second))
	}
	return m
}

// A rank is isolated if it hears no other machine of several. If there is only one, that may be
// down.
func TestIsolated(t *testing.T) {
	for _, c := range []struct {
		nodes string
		heard []int
		want  bool
	}{
		{"abc", nil, true},
		{"aabbcc", []int{1}, true},
		{"abc", []int{2}, false},
		{"aabb", []int{1}, false},
		{"aaa", nil, false},
	} {
		require.Equal(t, c.want, monitorOf(c.nodes, c.heard...).isolated(), "%s, heard %v", c.nodes, c.heard)
	}
	m := monitorOf("abc")
	m.peers[2].left.Store(true)
	require.False(t, m.isolated(), "a machine that has left need not be heard")
	m = monitorOf("abc")
	m.started = time.Now()
	require.True(t, m.isolated(), "no machine has been heard since the start")
}

// A rank that hears another which a third does not says so.
func TestReportOfSilence(t *testing.T) {
	silent := &collective.RankError{Rank: 2, Phase: "heartbeat", Err: collective.ErrSilent}
	for _, c := range []struct {
		heard []int
		cause error
		text  string
	}{
		{[]int{1, 2}, collective.ErrSilent, "its network is down; rank 0 still hears it, so only its connection to rank 1 may be broken (reported by rank 1)"},
		{[]int{1}, collective.ErrSilent, "its network is down (reported by rank 1)"},
		{[]int{1, 2}, collective.ErrLost, "its machine is unreachable (reported by rank 1)"},
	} {
		m := monitorOf("abc", c.heard...)
		silent.Err = c.cause
		m.reported(1, collective.PutAbort(silent, 1))
		require.ErrorIs(t, m.broken(), c.cause)
		require.ErrorContains(t, m.broken(), c.text)
		var broken *collective.RankError
		require.True(t, errors.As(m.broken(), &broken))
		require.Equal(t, 2, broken.Rank)
	}
}

// A frame whose payload comes long after its header is read as one frame.
func TestFrameInTwoParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		m := monitorOf("ab")
		frames := make(chan string)
		go func() {
			defer close(frames)
			control := &Link{raw: near, conn: near}
			for {
				var payload []byte
				if err := m.nextFrame(control, func(h *collective.Header) ([][]byte, error) {
					payload = make([]byte, h.Len)
					return [][]byte{payload}, nil
				}); err != nil {
					return
				}
				frames <- string(payload)
			}
		}()
		text := strings.Repeat("text ", 60)
		h := collective.Header{Call: collective.Call{Kind: frameAbort}, Len: uint32(len(text))}
		var head [collective.HeaderSize]byte
		h.Put(head[:])
		<-time.After(m.silence * 2 / 5) // until shortly before the first wait ends
		_, err := far.Write(head[:])
		require.NoError(t, err)
		<-time.After(m.silence / 5)
		_, err = far.Write([]byte(text))
		require.NoError(t, err)
		require.Equal(t, text, <-frames)
		require.NoError(t, far.Close())
		_, more := <-frames
		require.False(t, more)
	})
}

// Many ranks send fewer heartbeats to each peer, but enough that no rank seems silent.
func TestHeartbeatsOfManyRanks(t *testing.T) {
	for ranks, want := range map[int]time.Duration{2: 250, 32: 250, 64: 500, 128: 1000, 1000: 1000} {
		require.Equal(t, want*time.Millisecond, heartbeatOf(ranks, silenceLimit), ranks)
	}
	require.Equal(t, 250*time.Millisecond, heartbeatOf(128, time.Second))
}

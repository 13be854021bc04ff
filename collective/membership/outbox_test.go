package membership

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"
)

func TestOutboxKeepsOrderAndDropsTheOldest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		var mu sync.Mutex
		got := map[string][]byte{}
		refused := 0
		o := newOutbox(func(to *memberlist.Node, p []byte) error {
			if to.Name == "slow" {
				<-gate
			}
			mu.Lock()
			defer mu.Unlock()
			got[to.Name] = append(got[to.Name], p...)
			if to.Name == "down" {
				return errors.New("refused")
			}
			return nil
		}, func(*memberlist.Node, error) {
			mu.Lock()
			defer mu.Unlock()
			refused++
		})
		require.NoError(t, o.flush(t.Context()), "nothing to send")
		for i := range 3 {
			o.put(memberlist.Node{Name: "quick"}, []byte{byte(i)})
			o.put(memberlist.Node{Name: "down"}, []byte{byte(i)})
		}
		o.put(memberlist.Node{Name: "slow"}, []byte{0})
		synctest.Wait() // the first is being sent, the others are queued
		for i := range 2 * queueDepth {
			o.put(memberlist.Node{Name: "slow"}, []byte{byte(i + 1)})
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, o.flush(ctx), context.DeadlineExceeded, "a slow receiver delays it")
		close(gate)
		require.NoError(t, o.flush(t.Context()))
		require.Equal(t, []byte{0, 1, 2}, got["quick"])
		require.Equal(t, 3, refused)
		require.Len(t, got["slow"], queueDepth+1)
		require.Equal(t, byte(2*queueDepth), got["slow"][queueDepth])
		o.close()
		o.put(memberlist.Node{Name: "quick"}, []byte{9})
		require.Len(t, got["quick"], 3, "nothing is sent after close")
	})
}

func TestInboxDropsMessagesNotMembers(t *testing.T) {
	b := newInbox()
	members, messages := 0, 0
	for range 2 * maxQueued {
		b.message(func(time.Time) { messages++ })
		b.put(func(time.Time) { members++ })
	}
	<-b.wake
	for _, do := range b.drain() {
		do(time.Time{})
	}
	require.Equal(t, maxQueued, messages)
	require.Equal(t, 2*maxQueued, members)
	require.Empty(t, b.drain())
}

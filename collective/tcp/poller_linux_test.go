package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// If another goroutine has sent everything in the meantime, nothing sleeps.
func TestNoWaitForRoomWithNothingToSend(t *testing.T) {
	v := collective.View{Job: 7, Epoch: 1, Members: make([]collective.Member, 1)}
	transport := newTransport(v, 1, silenceLimit)
	defer func() { require.NoError(t, transport.Close()) }()
	began := time.Now()
	transport.waitForRoom()
	transport.poller.sendPoll = transport.waitForEvent(transport.poller.sendPoll, nil)
	require.Less(t, time.Since(began), sleepMost*time.Millisecond)
}

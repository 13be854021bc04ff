package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// Where another goroutine has sent everything meanwhile there is nothing to sleep
// for.
func TestSettleWithNothingToSend(t *testing.T) {
	v := collective.View{Job: 7, Epoch: 1, Members: make([]collective.Member, 1)}
	transport := newTransport(v, 1, silence)
	defer func() { require.NoError(t, transport.Close()) }()
	began := time.Now()
	transport.settle()
	transport.drive.settle = transport.sleep(transport.drive.settle, nil)
	require.Less(t, time.Since(began), sleepMost*time.Millisecond)
}

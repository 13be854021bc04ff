package collective

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Close waits for the call in progress, and notices its end even if the call has not
// seen that the engine is closing.
func TestActiveCallEndsUnseen(t *testing.T) {
	a := activeCall{left: make(chan struct{}, 1)}
	a.enter(&Header{Seq: 3})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.end()
	}()
	require.Eventually(t, a.closing.Load, time.Minute, time.Microsecond)
	select {
	case <-ended:
		t.Fatal("end did not wait for the call")
	case <-time.After(5 * lookAgain):
	}
	a.now.Publish(0) // leave, but it loads closing before end stores it
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("end waits although the call is over")
	}
}

package collective

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What the record adds to a call that waits for no rank, and to one that waits.
func BenchmarkFlight(b *testing.B) {
	o := &Operation{Header: Header{Call: Call{Kind: KindAllReduce, DType: Float32, Count: 1}}}
	for name, waits := range map[string]int{"quick": 0, "waiting": 1} {
		b.Run(name, func(b *testing.B) {
			f := newFlight(8)
			b.ReportAllocs()
			for i := range b.N {
				o.Seq = uint64(i)
				f.begin(o, f.clock.Now())
				for range waits {
					began := f.Begin(1, LateToCall)
					f.End(1, LateToCall, began)
				}
				f.end(nil, false)
			}
		})
	}
}

// Waits are of the call in progress alone: a transport that is shared with a Sub
// may note some when this group has none.
func TestWaitsOutsideOfACall(t *testing.T) {
	f := newFlight(2)
	note := func() {
		began := f.Begin(1, SlowToMove)
		f.End(1, SlowToMove, began)
	}
	note()
	f.begin(&Operation{Header: Header{Call: Call{Kind: KindBarrier}, Seq: 1}}, f.clock.Now())
	f.end(nil, false)
	note()
	calls, waiting, _ := f.copy()
	require.Nil(t, waiting)
	require.Len(t, calls, 1)
	require.Empty(t, calls[0].Waits)
	require.Zero(t, calls[0].Took, "the clock was not read")
	var none *Waits
	require.Zero(t, none.Begin(0, LateToCall), "a transport without a group")
	none.End(0, LateToCall, 0)
}

// An entry that is used again does not have the waits of the call before.
func TestWaitsOfAnOldCall(t *testing.T) {
	f := newFlight(2)
	for seq := range uint64(FlightCalls + 2) { // the last one takes the place of the first
		f.begin(&Operation{Header: Header{Call: Call{Kind: KindBarrier}, Seq: seq}}, f.clock.Now())
		if seq == 0 {
			f.End(1, LateToCall, f.Begin(1, LateToCall)-time.Second)
		}
		f.end(nil, false)
		calls, _, _ := f.copy()
		require.Equal(t, seq == 0, calls[len(calls)-1].Waits != nil, "call %d", seq)
	}
}

package collective

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// A header that no rank sends outside of calls, or not as the next one, is refused.
func TestIncomingAccept(t *testing.T) {
	want := Header{Job: 7, Epoch: 2, Group: 3, Seq: 4, Call: Call{Kind: KindMessage}}
	good := want
	good.Call = Call{Kind: KindMessage, DType: Float32, Root: 9, Count: 100_000}
	good.Step, good.Len = 12, schedule.SegmentBytes
	require.False(t, (&Header{Call: good.Call}).OfAll(), "its number does not tell how many calls a rank has made")
	f := incoming{Header: good}
	require.NoError(t, f.accept(1, &want, 0))
	require.Equal(t, 400_000, f.bytes)
	require.Equal(t, 2, f.segments)
	lo, hi := f.next()
	require.Equal(t, [2]int{0, schedule.SegmentBytes}, [2]int{lo, hi})
	f.segments--
	lo, hi = f.next()
	require.Equal(t, [2]int{schedule.SegmentBytes, 400_000}, [2]int{lo, hi})
	require.EqualValues(t, 1, f.Part)
	require.EqualValues(t, hi-lo, f.Len)

	for what, change := range map[string]func(*Header){
		"job":                  func(h *Header) { h.Job++ },
		"epoch":                func(h *Header) { h.Epoch++ },
		"group":                func(h *Header) { h.Group++ },
		"number":               func(h *Header) { h.Seq++ },
		"part":                 func(h *Header) { h.Part++ },
		"type":                 func(h *Header) { h.Call.DType = 0 },
		"unknown type":         func(h *Header) { h.Call.DType = 200 },
		"length of the part":   func(h *Header) { h.Len-- },
		"short":                func(h *Header) { h.Call.Count = 3 },
		"overflow":             func(h *Header) { h.Call.Count = math.MaxUint64 },
		"overflow of bytes":    func(h *Header) { h.Call.Count = 1 << 62 },
		"call":                 func(h *Header) { h.Call.Kind = KindAllReduce },
		"control":              func(h *Header) { h.Call.Kind = 0xf0 },
		"an end with elements": func(h *Header) { h.Call.Kind = KindEnd },
	} {
		f := incoming{Header: good}
		change(&f.Header)
		require.ErrorIs(t, f.accept(1, &want, 0), ErrMismatch, what)
	}
}

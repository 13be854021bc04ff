package collective

import (
	"math"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// An incoming is the message that Messages.Next found last.
type incoming struct {
	Header
	from     int
	offered  bool // Recv may receive it
	bytes    int  // of the payload
	segments int  // that have not been received; even an empty payload has one
}

// accept checks a header that has arrived. want is the beginning of any message that
// the rank may send next.
func (f *incoming) accept(from int, want *Header, self int) error {
	const most = math.MaxInt / 2 // bytes; more would overflow
	width := uint64(f.Call.DType.Size())
	ok := f.Job == want.Job && f.Epoch == want.Epoch && f.Group == want.Group && f.Seq == want.Seq && f.Part == 0
	switch f.Call.Kind {
	case KindMessage:
		ok = ok && width != 0 && f.Call.Count <= most/width && uint64(f.Len) == min(f.Call.Count*width, schedule.SegmentBytes)
	case KindEnd:
		ok = ok && f.Call.Count == 0 && f.Len == 0
	default:
		ok = false
	}
	if !ok {
		return &MismatchError{Self: self, Peer: from, Mine: *want, Theirs: f.Header}
	}
	f.from, f.bytes = from, int(f.Call.Count*width)
	f.segments = segmentsOf(f.bytes)
	return nil
}

// next makes the header that of the next segment, and returns its part [lo, hi) of the
// payload.
func (f *incoming) next() (lo, hi int) {
	k := segmentsOf(f.bytes) - f.segments
	lo, hi = segment(k, f.bytes)
	f.Part, f.Len = uint32(k), uint32(hi-lo)
	return lo, hi
}

// segmentsOf returns the number of segments of a message's payload.
func segmentsOf(bytes int) int { return max(1, messages(bytes, schedule.SegmentBytes)) }

// segment returns the part [lo, hi) of a payload that its k-th segment carries.
func segment(k, bytes int) (lo, hi int) {
	return k * schedule.SegmentBytes, min((k+1)*schedule.SegmentBytes, bytes)
}

package trace

import "fmt"

// Skew is the delay that one rank has caused the others, in the calls of their records.
type Skew struct {
	LateMs float64 `json:"late_ms"` // it made calls later than they did
	SlowMs float64 `json:"slow_ms"` // it was in a call, but they waited for it
	Calls  int     `json:"calls"`   // calls in which another rank waited for it
}

// Skews compares records, by rank; a nil record is missing. In each call, a rank is
// late and slow by the longest wait of another rank for it. Ranks on the same node
// share a clock. Of their waits, only the time until the rank began the call counts as
// late, and the rest as slow. Time that a rank itself waited in the call is subtracted
// from its slowness.
func Skews(records []*Record) []Skew {
	skews := make([]Skew, len(records))
	for _, calls := range bySeq(records) {
		for p := range records {
			late, slow := 0., 0.
			for r, c := range calls {
				if c == nil || r == p {
					continue
				}
				l, s := c.waitFor(p)
				if theirs := calls[p]; theirs != nil && records[r].Node == records[p].Node {
					if most := max(0, ms(theirs.Began.Sub(c.Began))); l > most {
						l, s = most, s+l-most
					}
				}
				late, slow = max(late, l), max(slow, s)
			}
			if calls[p] != nil {
				slow = max(0, slow-calls[p].waited())
			}
			if late > 0 || slow > 0 {
				skews[p].Calls++
			}
			skews[p].LateMs += late
			skews[p].SlowMs += slow
		}
	}
	return skews
}

// bySeq returns the calls of all ranks, by sequence number and then by rank. It leaves
// out calls between two ranks and messages, which have their own numbers.
func bySeq(records []*Record) map[uint64][]*Call {
	calls := map[uint64][]*Call{}
	for r, record := range records {
		if record == nil {
			continue
		}
		for i := range record.Calls {
			c := &record.Calls[i]
			if c.Kind == "Send" || c.Kind == "Message" {
				continue
			}
			if calls[c.Seq] == nil {
				calls[c.Seq] = make([]*Call, len(records))
			}
			calls[c.Seq][r] = c
		}
	}
	return calls
}

// waitFor returns how long a call waited for a rank.
func (c *Call) waitFor(rank int) (late, slow float64) {
	for _, w := range c.Waits {
		if w.Rank == rank {
			return w.LateMs, w.SlowMs
		}
	}
	return 0, 0
}

// waited returns how long a call waited for all ranks together.
func (c *Call) waited() (ms float64) {
	for _, w := range c.Waits {
		ms += w.LateMs + w.SlowMs
	}
	return ms
}

// noticeableMs is the shortest wait that Chains considers. Records are not taken at
// exactly the same time, and even in a healthy job every rank waits now and then.
const noticeableMs = 50

// A Chain shows which rank waits for which, from the rank that has waited longest to the
// root: a rank that waits for no other, or about which nothing is known.
type Chain struct {
	Ranks []int  `json:"ranks"` // the last is the root; in a cycle its first rank appears again
	Why   string `json:"why"`   // what is known about the root
}

// Chains returns the chain that starts with the rank that has waited longest, or nil if
// no wait is noticeable. For a rank without a record, why returns what is known.
func Chains(records []*Record, why func(rank int) string) *Chain {
	first := -1
	for r, record := range records {
		if record.waits() && (first < 0 || record.Waiting.ForMs > records[first].Waiting.ForMs) {
			first = r
		}
	}
	if first < 0 {
		return nil
	}
	c := &Chain{}
	seen := map[int]bool{}
	for r := first; ; r = records[r].Waiting.Rank {
		c.Ranks = append(c.Ranks, r)
		switch {
		case seen[r]:
			c.Why = "they wait for each other"
			return c
		case r >= len(records) || records[r] == nil:
			c.Why = why(r)
			return c
		case !records[r].waits() || records[r].Waiting.Rank < 0:
			c.Why = records[r].idle()
			return c
		}
		seen[r] = true
	}
}

// waits reports whether the rank is in a noticeable wait.
func (r *Record) waits() bool {
	return r != nil && r.Waiting != nil && r.Waiting.ForMs >= noticeableMs
}

// idle describes what a rank does that waits for no other.
func (r *Record) idle() string {
	if c := r.InProgress(); c != nil {
		return fmt.Sprintf("it has been in %s #%d for %s and waits for no rank", c.Call, c.Seq, Span(c.TookMs))
	}
	if n := len(r.Calls); n > 0 {
		last := &r.Calls[n-1]
		ended := ms(r.Taken.Sub(last.Began)) - last.TookMs
		return fmt.Sprintf("it has not been in a call for %s; its last was %s #%d of step %d", Span(ended), last.Call, last.Seq, last.Step)
	}
	return "it has made no call yet"
}

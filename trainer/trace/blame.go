package trace

import "fmt"

// Skew is what one rank has cost the others in the calls that their records
// hold.
type Skew struct {
	LateMs float64 `json:"late_ms"` // it made calls after they did
	SlowMs float64 `json:"slow_ms"` // it was in a call, and they waited for it
	Calls  int     `json:"calls"`   // in which somebody waited for it
}

// Skews compares records, by rank; nil is a rank without one. In each call a
// rank is late, or slow, by the longest that another has waited for it. Who is
// on its node has the same clock: of such a wait it was late only until it began
// the call, and slow for the rest. What a rank itself waited for others in a
// call is not held against it as slowness.
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

// bySeq is the calls of all ranks, by their number and by rank. Calls between
// two ranks have numbers of their own and are left out.
func bySeq(records []*Record) map[uint64][]*Call {
	calls := map[uint64][]*Call{}
	for r, record := range records {
		if record == nil {
			continue
		}
		for i := range record.Calls {
			c := &record.Calls[i]
			if c.Kind == "Send" {
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

// waitFor is for how long a call waited for a rank.
func (c *Call) waitFor(rank int) (late, slow float64) {
	for _, w := range c.Waits {
		if w.Rank == rank {
			return w.LateMs, w.SlowMs
		}
	}
	return 0, 0
}

// waited is for how long a call waited for anybody.
func (c *Call) waited() (ms float64) {
	for _, w := range c.Waits {
		ms += w.LateMs + w.SlowMs
	}
	return ms
}

// noticeableMs is how long a wait lasts at least that is looked into: records
// are not taken at quite the same time, and in a job that goes well every rank
// waits now and then.
const noticeableMs = 50

// A Chain is who waits for whom, from the one who has waited longest to the
// root: the rank that waits for nobody, or of which nothing is known.
type Chain struct {
	Ranks []int  `json:"ranks"` // the last is the root; the first of a circle comes again
	Why   string `json:"why"`   // what is known of the root
}

// Chains is the chain that begins with the rank that has waited longest; nil if
// nobody waits noticeably. Of a rank without a record, why says what is known.
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

// waits reports whether the rank waits noticeably.
func (r *Record) waits() bool {
	return r != nil && r.Waiting != nil && r.Waiting.ForMs >= noticeableMs
}

// idle is what a rank does that waits for nobody.
func (r *Record) idle() string {
	if c := r.InProgress(); c != nil {
		return fmt.Sprintf("it is in %s #%d for %s and waits for nobody", c.Call, c.Seq, Span(c.TookMs))
	}
	if n := len(r.Calls); n > 0 {
		last := &r.Calls[n-1]
		ended := ms(r.Taken.Sub(last.Began)) - last.TookMs
		return fmt.Sprintf("it is in no call since %s: the last was %s #%d of step %d", Span(ended), last.Call, last.Seq, last.Step)
	}
	return "it has made no call yet"
}

package schedule

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Links are what a group measures when it forms.
type Links struct {
	Near, Far Cost     // of links inside a host and between hosts
	Calls     []Sample // in the order of their sizes; empty if no calls were timed
}

// linkWords is the number of words of Links without Calls.
const linkWords = 6

// LinksWords is the number of words that hold Links.
const LinksWords = linkWords + sampleWords*MostSamples

// sampleWords is the number of words of a Sample.
const sampleWords = 4

// Words returns the numbers of l, for other ranks.
func (l Links) Words() []float64 {
	words := []float64{l.Near.Latency, l.Near.PerByte, l.Near.Fold, l.Far.Latency, l.Far.PerByte, l.Far.Fold}
	for _, s := range l.Calls[:min(len(l.Calls), MostSamples)] {
		words = append(words, float64(s.Bytes), float64(s.Took), float64(s.Method), float64(s.Segment))
	}
	return append(words, make([]float64, LinksWords-len(words))...)
}

// LinksOf returns the Links with these words.
func LinksOf(words []float64) Links {
	l := Links{Near: Cost{words[0], words[1], words[2]}, Far: Cost{words[3], words[4], words[5]}}
	for w := words[linkWords:LinksWords]; len(w) > 0 && w[0] > 0; w = w[sampleWords:] {
		l.Calls = append(l.Calls, Sample{int(w[0]), time.Duration(w[1]), Rival{Method(w[2]), int(w[3])}})
	}
	return l
}

// Check returns an error if no group can have measured these links.
func (l Links) Check() error {
	for _, x := range l.Words()[:linkWords] {
		if math.IsNaN(x) || x < 0 || x > math.MaxInt64 {
			return fmt.Errorf("a link cannot cost %g ns", x)
		}
	}
	if len(l.Calls) > MostSamples {
		return fmt.Errorf("%d timed calls: there are at most %d", len(l.Calls), MostSamples)
	}
	if !slices.IsSortedFunc(l.Calls, func(a, b Sample) int { return a.Bytes - b.Bytes }) {
		return errors.New("timed calls must be in the order of their sizes")
	}
	for i, s := range l.Calls {
		if s.Bytes <= 0 || s.Took <= 0 || i > 0 && s.Bytes == l.Calls[i-1].Bytes {
			return fmt.Errorf("a call of %d bytes cannot take %v", s.Bytes, s.Took)
		}
		if s.Method != 0 && !slices.Contains([]Method{Bruck, Collected, Direct, Ring}, s.Method) {
			return fmt.Errorf("%v was not measured for calls of %d bytes", s.Method, s.Bytes)
		}
		if s.Segment != 0 && s.Rival != (Rival{Ring, longPair}) {
			return fmt.Errorf("messages of %d bytes were not measured for calls of %d bytes", s.Segment, s.Bytes)
		}
	}
	return nil
}

// What calls tell of links.
const (
	telling = 64 << 10 // bytes from which the time of a call is mostly that of its bytes
	saved   = 1.5      // calls may take this much less time than their bytes need, because a limiter has saved up tokens
)

// Correct changes what a byte between hosts costs, if it must cost less, because calls took less
// time than a link would need for their bytes, or if it seems to cost nothing. Then a trial of the
// links was disturbed, and the calls tell the cost. hosts are those of a Situation.
func (l *Links) Correct(hosts []int) {
	far, n := &l.Far, len(l.Calls)
	if n < 2 || l.Calls[n-1].Bytes < telling {
		if far.PerByte == 0 {
			far.PerByte = Network.PerByte
		}
		return
	}
	distinct := 0
	for r := range hosts {
		if firstOf(r, hosts) {
			distinct++
		}
	}
	a, b := l.Calls[0], l.Calls[n-1]
	most := float64(b.Took) / float64(float64(b.Bytes)*share(distinct)) // no algorithm sends fewer bytes between hosts
	if 0 < far.PerByte && far.PerByte <= saved*most {
		return
	}
	added := float64(b.Took-a.Took) / float64(float64(b.Bytes-a.Bytes)*share(len(hosts))) // by bytes, to the time of a small call
	far.PerByte = min(max(added, most/2), most)                                           // the small call may have been slow
	*far = far.rounded()
}

// share returns how much of a vector each link carries in a ring of n.
func share(n int) float64 { return 2 * float64(n-1) / float64(n) }

// disturbed is how many times as long a byte may take as in a call of the size before.
// Caches explain up to two.
const disturbed = 3

// Lasting reports whether l is worth keeping for other jobs: no other load seems to have
// disturbed the calls, and there was time for those that tell much.
func (l *Links) Lasting() bool {
	if n := len(l.Calls); n > 0 && l.Calls[n-1].Bytes < telling {
		return false
	}
	for i := 1; i < len(l.Calls); i++ {
		a, b := l.Calls[i-1], l.Calls[i]
		if float64(b.Took)/float64(b.Bytes) > disturbed*float64(a.Took)/float64(a.Bytes) {
			return false
		}
	}
	return true
}

// How a later group of the same hosts checks Links.
const (
	LeastProbes = 3              // minimum number of calls of a size; the fastest counts
	MostProbes  = 16             // maximum number of calls of a size
	ProbeBound  = LinkBound / 20 // no more calls of a size after this time
	probeSmall  = 64 << 10       // bytes; one probe is larger, one is not
	probeLong   = LinkBound / 20 // longest call that is used as the large probe
	probeRatio  = 2              // a probe this many times longer or shorter means other links
)

// Probes returns calls that show whether the links still cost what they did: a large one, if
// that takes little time, and then a small one, when ranks have had time to find a core each.
// There are none if no calls were timed.
func (l *Links) Probes() []Sample {
	var probes []Sample
	add := func(fits func(Sample) bool) {
		for _, s := range slices.Backward(l.Calls) {
			if fits(s) {
				probes = append(probes, s)
				return
			}
		}
	}
	add(func(s Sample) bool { return s.Bytes > probeSmall && s.Took <= probeLong })
	add(func(s Sample) bool { return s.Bytes <= probeSmall })
	return probes
}

// Confirms reports whether calls still take about as long as s says. took is the fastest of
// several calls of that size, each timed on its slowest rank.
func (s Sample) Confirms(took time.Duration) bool {
	return took < probeRatio*s.Took && s.Took < probeRatio*took
}

package paramserver

import "slices"

// staleBins is the length of Staleness.Histogram.
const staleBins = 32

// Staleness counts the gradients of a run by what a server did with them. Each worker
// sends one gradient for every step that it computes.
type Staleness struct {
	Applied int // in full
	Damped  int // late, and applied in a damped update
	Dropped int // late, and not applied
	Unused  int // not applied because the training had ended
	// Histogram counts the gradients that came before the end by staleness. The last of its
	// 32 bins has everything from 31 on.
	Histogram []int
}

// Total returns the number of gradients.
func (s Staleness) Total() int { return s.Applied + s.Damped + s.Dropped + s.Unused }

// Late returns the share of gradients that were late, in percent.
func (s Staleness) Late() float64 { return s.percent(s.Damped + s.Dropped) }

// Discarded returns the share of gradients that were not applied, in percent.
func (s Staleness) Discarded() float64 { return s.percent(s.Dropped + s.Unused) }

func (s Staleness) percent(n int) float64 { return 100 * float64(n) / float64(max(s.Total(), 1)) }

// Mean returns the mean staleness of the gradients in the histogram.
func (s Staleness) Mean() float64 {
	n, sum := 0, 0
	for staleness, count := range s.Histogram {
		n, sum = n+count, sum+staleness*count
	}
	return float64(sum) / float64(max(n, 1))
}

// note adds a gradient to the histogram.
func (s *Staleness) note(staleness int) {
	if s.Histogram == nil {
		s.Histogram = make([]int, staleBins)
	}
	s.Histogram[min(staleness, staleBins-1)]++
}

// add adds the gradients of another server.
func (s *Staleness) add(o Staleness) {
	s.Applied, s.Damped, s.Dropped, s.Unused = s.Applied+o.Applied, s.Damped+o.Damped, s.Dropped+o.Dropped, s.Unused+o.Unused
	if s.Histogram == nil {
		s.Histogram = make([]int, staleBins)
	}
	for i, n := range o.Histogram {
		s.Histogram[i] += n
	}
}

// staleWords is the number of words in which a Staleness travels.
const staleWords = 4 + staleBins

// words returns the wire form.
func (s Staleness) words() []uint64 {
	words := make([]uint64, staleWords)
	for i, n := range slices.Concat([]int{s.Applied, s.Damped, s.Dropped, s.Unused}, s.Histogram) {
		words[i] = uint64(n)
	}
	return words
}

// stalenessOf returns the Staleness that words has written.
func stalenessOf(words []uint64) Staleness {
	n := make([]int, staleWords)
	for i := range n {
		n[i] = int(words[i])
	}
	return Staleness{Applied: n[0], Damped: n[1], Dropped: n[2], Unused: n[3], Histogram: n[4:]}
}

// encode returns the words in the elements of a message.
func (s Staleness) encode() []float32 {
	b := make([]float32, 2*staleWords)
	for i, x := range s.words() {
		putWord(b[2*i:], x)
	}
	return b
}

// decodeStaleness returns the Staleness that encode has written.
func decodeStaleness(b []float32) Staleness {
	words := make([]uint64, staleWords)
	for i := range words {
		words[i] = getWord(b[2*i:])
	}
	return stalenessOf(words)
}

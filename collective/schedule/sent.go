package schedule

// Message is the most elements of a message when size ranks reduce a vector of
// count elements by the plan.
func (p Plan) Message(size, count int) int {
	switch p.Method {
	case OneShot:
		return count
	case Bruck: // the vectors of several ranks
		most := 1
		for i := range Rounds(size) {
			most = max(most, Told(size, i))
		}
		return most * count
	case Collected:
		most := 1
		for r := 1; r < size; r++ {
			most = max(most, Through(r, size)-r)
		}
		return most * count
	case Ring, Direct:
		return min(p.Segment, (count+size-1)/size)
	}
	return min(p.Segment, count)
}

// Sent is the bytes of payload that each of size ranks sends, on average, when a
// vector of so many bytes is reduced by the plan. Where ranks share memory it is
// the bytes that they read of each other.
func (p Plan) Sent(size, bytes int) int {
	switch {
	case size < 2:
		return 0
	case p.Method == OneShot, p.Method == Bruck:
		return Gathered(size, bytes)
	case p.Method == Collected: // what is collected goes up to a logarithm of steps
		return (collected(size) + size - 1) * bytes / size
	}
	return 2 * (size - 1) * bytes / size
}

// Gathered is the bytes of payload that each of size ranks sends, on average, in
// an AllGather of so many bytes from each: every rank gets the piece of every
// other. A plan that is Collected, for few bytes of many ranks, sends more.
func Gathered(size, bytes int) int { return max(size-1, 0) * bytes }

// Gathered is [Gathered] of the ranks of the Situation.
func (s *Situation) Gathered(bytes int) int { return Gathered(len(s.Hosts), bytes) }

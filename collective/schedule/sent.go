package schedule

// Message returns the maximum number of elements per message when size ranks
// reduce a vector of count elements by the plan.
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

// Sent returns the bytes of payload that each of size ranks sends, on average,
// when a vector of the given number of bytes is reduced by the plan. For ranks
// that share memory, it is the bytes that they read from each other.
func (p Plan) Sent(size, bytes int) int {
	switch {
	case size < 2:
		return 0
	case p.Method == OneShot, p.Method == Bruck:
		return Gathered(size, bytes)
	case p.Method == Collected: // an operand goes up as many as log2(size) levels
		return (collected(size) + size - 1) * bytes / size
	}
	return 2 * (size - 1) * bytes / size
}

// Gathered returns the bytes of payload that each of size ranks sends, on
// average, in an AllGather to which each contributes the given number of bytes.
// Every rank gets the piece of every other. A Collected plan, for few bytes of
// many ranks, sends more.
func Gathered(size, bytes int) int { return max(size-1, 0) * bytes }

// Gathered returns [Gathered] for the number of ranks of the Situation.
func (s *Situation) Gathered(bytes int) int { return Gathered(len(s.Hosts), bytes) }

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

// Sent is the bytes of payload that each of size ranks sends when a vector of so
// many bytes is reduced by the plan, to a block. Where ranks share memory it is
// what they read of each other.
func (p Plan) Sent(size, bytes int) int {
	switch {
	case size < 2:
		return 0
	case p.Method == OneShot, p.Method == Bruck:
		return (size - 1) * bytes
	case p.Method == Collected: // on average: what is collected goes up to a logarithm of steps
		return (collected(size) + size - 1) * bytes / size
	}
	return 2 * (size - 1) * bytes / size
}

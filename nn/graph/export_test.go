package graph

// MostPrograms is the number of programs that a Layer keeps.
const MostPrograms = mostPrograms

// Programs returns the number of programs that l has.
func (l *Layer) Programs() int { return len(l.programs) }

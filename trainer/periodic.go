package trainer

// A Periodic is a Strategy whose ranks agree only from time to time. In between, each has
// values of its own, and a Report covers this rank alone; the next one after which ranks
// agree covers these steps again, for all ranks. Train evaluates only when ranks agree, and
// does not stop before.
type Periodic interface {
	Strategy
	// Every returns after how many steps ranks agree. They also agree after the last step
	// of a run. It is at least 1.
	Every() int
}

// agreed returns the last number of steps, at most this many, after which all ranks hold the same
// values.
func (l *loop) agreed(steps int) int {
	p, ok := l.Strategy.(Periodic)
	if !ok || steps == l.Steps {
		return steps
	}
	return steps / p.Every() * p.Every()
}

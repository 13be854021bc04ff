package nn

import "sync"

// A Param is one named parameter. Values and Grads are its parts of the arenas.
type Param struct {
	Name          string // a path, such as "layers.0.W"
	Shape         []int
	Offset        int // of the first element, in both arenas
	Values, Grads Buffer
	// Momentum is 0 for parameters that are trained. Otherwise the parameter is a running
	// statistic. It has no gradient. A backward pass adds to Grads the statistic of its rows
	// times their number, so that the sum over micro-batches and ranks, divided by all
	// rows, is the mean; and an update sets Values = (1-Momentum)·Values + Momentum·mean,
	// whatever the optimizer does to other parameters.
	Momentum float32
	// Touched has at least the rows of a table whose gradient might be nonzero. A layer that
	// scatters gradients sets it, and adds the rows in its backward pass, before it adds to
	// Grads; see [Params.Untouch]. nil means that any element may have a gradient.
	Touched *RowSet
}

// Params holds every parameter of a model, packed into an arena of values and an arena of
// gradients with the same offsets. Each parameter starts at a multiple of 16 elements;
// the elements between parameters are zero and stay zero. Work on all parameters at once,
// such as a collective or a raw checkpoint, can use the arenas directly.
type Params struct {
	List          []*Param // in order of declaration, which is forward order
	Values, Grads Buffer

	indexed sync.Once
	index   map[string]*Param // of List, for Lookup
}

// Count returns the number of trained elements: without gaps and running statistics.
func (p *Params) Count() int {
	n := 0
	for _, q := range p.List {
		if q.Momentum == 0 {
			n += product(q.Shape)
		}
	}
	return n
}

// Statistic returns the first running statistic, or nil if there is none.
func (p *Params) Statistic() *Param {
	for _, q := range p.List {
		if q.Momentum > 0 {
			return q
		}
	}
	return nil
}

// Untouch empties Touched of every parameter. Call it only after setting Grads to 0.
// Until then, the sets only grow.
func (p *Params) Untouch() {
	for _, q := range p.List {
		if q.Touched != nil {
			q.Touched.Clear()
		}
	}
}

// Lookup returns the parameter with the given name, or nil. List must not change after the
// first call.
func (p *Params) Lookup(name string) *Param {
	p.indexed.Do(func() {
		p.index = make(map[string]*Param, len(p.List))
		for _, q := range p.List {
			p.index[q.Name] = q
		}
	})
	return p.index[name]
}

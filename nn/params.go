package nn

// A Param is one named parameter. Values and Grads are its parts of the arenas.
type Param struct {
	Name          string // a path, such as "layers.0.W"
	Shape         []int
	Offset        int // of the first element, in both arenas
	Values, Grads Buffer
}

// Params holds every parameter of a model, packed into an arena of values and an arena of
// gradients with the same offsets. Each parameter starts at a multiple of 16 elements;
// the elements between parameters are zero and stay zero. Work on all parameters at once,
// such as a collective or a raw checkpoint, can use the arenas directly.
type Params struct {
	List          []*Param // in order of declaration, which is forward order
	Values, Grads Buffer
}

// Count returns the number of trained elements, excluding the gaps.
func (p *Params) Count() int {
	n := 0
	for _, q := range p.List {
		n += product(q.Shape)
	}
	return n
}

// Lookup returns the parameter with the given name, or nil.
func (p *Params) Lookup(name string) *Param {
	for _, q := range p.List {
		if q.Name == name {
			return q
		}
	}
	return nil
}

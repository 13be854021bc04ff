package nn

// A Param is one named parameter. Values and Grads are its parts of the arenas.
type Param struct {
	Name          string // a path, such as "layers.0.W"
	Shape         []int
	Offset        int // of its first element in the arenas
	Values, Grads Buffer
}

// Params is every parameter of a model, packed into an arena of values and one
// of gradients with equal offsets. Each parameter begins at a multiple of 16
// elements; elements between parameters are zero and stay so. What works on all
// parameters at once, such as a collective or a checkpoint of raw memory, works
// on the arenas.
type Params struct {
	List          []*Param // in the order of declaration, which is forward order
	Values, Grads Buffer
}

// Count returns the number of trained elements, without the gaps.
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

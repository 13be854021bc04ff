package nn

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// A Builder collects the parameters that layers declare in Init and then makes
// the arenas. A Builder for a layer inside another is a scope of it: all scopes
// of one model share the list, and differ in the path they put before names.
type Builder struct {
	path  string
	plans *plans
}

// plans is what all scopes of a Builder share.
type plans struct {
	seed   uint64
	list   []*Param
	init   []Initializer
	names  map[string]bool
	size   int // of the arena so far
	random uint32
	built  bool
	errs   []error
}

// paramAlign is the multiple of elements at which parameters begin: 64 bytes,
// one cache line. The bits of a matrix product may depend on alignment, so this
// also keeps a layer's results independent of what was declared before it.
const paramAlign = 16

// NewBuilder returns a Builder whose initial weights come from seed.
func NewBuilder(seed uint64) *Builder {
	return &Builder{plans: &plans{seed: seed, names: map[string]bool{}}}
}

// Scope returns a Builder that puts name and a dot before the names of
// parameters, after this Builder's own path.
func (b *Builder) Scope(name string) *Builder {
	return &Builder{path: b.join(name), plans: b.plans}
}

// Path returns the path of this scope, such as "layers.0"; "model" for the
// outermost, which has none.
func (b *Builder) Path() string {
	if b.path == "" {
		return "model"
	}
	return b.path
}

func (b *Builder) join(name string) string {
	if b.path == "" {
		return name
	}
	return b.path + "." + name
}

// Param declares a parameter. The result has its Name and Shape at once, the
// rest after Build. A name declared twice or a dimension below 1 is an error of
// Build.
func (b *Builder) Param(name string, shape []int, init Initializer) *Param {
	p := &Param{Name: b.join(name), Shape: slices.Clone(shape)}
	l := b.plans
	if l.names[p.Name] {
		l.errs = append(l.errs, fmt.Errorf("nn: parameter %s is declared twice; give one of its layers another scope", p.Name))
	}
	for _, d := range shape {
		if d < 1 {
			l.errs = append(l.errs, fmt.Errorf("nn: parameter %s has shape %v; every dimension must be at least 1", p.Name, shape))
			break
		}
	}
	l.names[p.Name] = true
	l.size = (l.size + paramAlign - 1) / paramAlign * paramAlign
	p.Offset = l.size
	l.size = grown(l.size, shape)
	l.list = append(l.list, p)
	l.init = append(l.init, init)
	return p
}

// Len is how many elements each of the arenas has for what was declared so
// far; math.MaxInt/2 if they are more.
func (b *Builder) Len() int { return min(b.plans.size, mostElements) }

// Declared returns the parameters that were declared so far, in order: names and
// shapes. Their values have no memory before Build.
func (b *Builder) Declared() []*Param { return slices.Clone(b.plans.list) }

// mostElements is beyond what any memory holds, and far from an overflow.
const mostElements = math.MaxInt / 2

// grown is size and the elements of a shape, mostElements if they are more.
func grown(size int, shape []int) int {
	n := 1
	for _, d := range shape {
		if d > 0 && n > mostElements/d {
			return mostElements
		}
		n *= d
	}
	return min(size+n, mostElements)
}

// Random returns the number by which a layer draws from [Stream]: 0 for the
// first layer that asks, then 1, and so on.
func (b *Builder) Random() uint32 {
	n := b.plans.random
	b.plans.random++
	return n
}

// NeedsInputGradient reports whether a parameter was declared before. If none
// was, nobody can want the gradient by the input of the layer now in Init, and
// its Backprop may return the zero Tensor instead.
func (b *Builder) NeedsInputGradient() bool { return len(b.plans.list) > 0 }

// Build allocates the two arenas on backend, gives every declared Param its
// place in them and sets initial weights. A Builder builds once.
func (b *Builder) Build(backend Backend) (*Params, error) {
	l := b.plans
	if l.built {
		return nil, errors.New("nn: Build was called twice; a Builder serves one model")
	}
	if err := errors.Join(l.errs...); err != nil {
		return nil, err
	}
	if l.size >= mostElements/4 {
		return nil, errors.New("nn: the parameters are more than any memory holds; make the model smaller")
	}
	l.built = true
	grads := backend.Alloc
	if s, ok := backend.(Sharer); ok {
		grads = s.AllocShared
	}
	p := &Params{List: l.list, Values: backend.Alloc(l.size), Grads: grads(l.size)}
	for i, q := range l.list {
		values := make([]float32, product(q.Shape))
		l.init[i](values, q.Shape, newDraws(l.seed, q.Name))
		q.Values = p.Values.Slice(q.Offset, q.Offset+len(values))
		q.Grads = p.Grads.Slice(q.Offset, q.Offset+len(values))
		backend.Copy(q.Values, values)
	}
	return p, nil
}

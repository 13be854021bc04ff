package nn

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// A Builder collects the parameters that layers declare in Init and then makes the
// arenas. A layer inside another gets a scope: a Builder that shares the model's list and
// differs only in the path it puts before names.
type Builder struct {
	path  string
	inner bool // the layer's input is another layer's result, not the model's input
	mixed bool // other layers compute with the layer's result
	plans *plans
}

// plans holds what all scopes of a Builder share.
type plans struct {
	seed   uint64
	list   []*Param
	init   []Initializer
	names  map[string]bool
	size   int // of the arena so far
	random uint32
	ids    int // see TakesIDs
	built  bool
	causal bool // see Sequence

	documents bool         // see TakesDocuments
	columns   []ColumnSpan // see TakesColumns
	begins    []int        // where each begins in a row, and their end
	onHost    string       // path of the first layer that computes on the host; "" if none does
	errs      []error
}

// ParamAlign is the alignment of parameters in elements: 64 bytes, one cache line. The
// bits of a matrix product may depend on alignment, so this also keeps a layer's results
// independent of the parameters declared before it.
const ParamAlign = 16

// NewBuilder returns a Builder that derives initial weights from seed.
func NewBuilder(seed uint64) *Builder {
	return &Builder{plans: &plans{seed: seed, names: map[string]bool{}}}
}

// Scope returns a Builder that prefixes parameter names with this Builder's path, name
// and a dot.
func (b *Builder) Scope(name string) *Builder {
	return &Builder{path: b.join(name), inner: b.inner, mixed: b.mixed, plans: b.plans}
}

// TakesIDs says that the model's input is ids from 0 to n-1. An [Embed] without Rows then
// has n.
func (b *Builder) TakesIDs(n int) { b.plans.ids = n }

// OnHost says that the layer of this scope reads values into the host's memory and computes
// there, so that steps of its model cannot be recorded.
func (b *Builder) OnHost() {
	if b.plans.onHost == "" {
		b.plans.onHost = b.Path()
	}
}

// HostLayer returns the path of the first layer that computes on the host, or "" if there
// is none.
func (b *Builder) HostLayer() string { return b.plans.onHost }

// element returns the scope of layer i of the layers in this scope.
func (b *Builder) element(i int) *Builder { return b.Scope("layers." + strconv.Itoa(i)) }

// Path returns the path of this scope, such as "layers.0", or "model" for the outermost
// scope.
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

// place runs Init of a layer inside another, whose scope is b.
func (b *Builder) place(l Layer, in, out []int) ([]int, error) {
	if l == nil {
		return nil, b.errorf("the layer is nil")
	}
	return l.Init(in, out, b)
}

// Param declares a parameter. The result has its Name and Shape at once, and the rest
// after Build. Build reports a name declared twice or a dimension below 1 as an error.
func (b *Builder) Param(name string, shape []int, init Initializer) *Param {
	p := &Param{Name: b.join(name), Shape: slices.Clone(shape)}
	l := b.plans
	if l.names[p.Name] {
		l.errs = append(l.errs, fmt.Errorf("nn: parameter %s is declared twice; give one of the layers another scope", p.Name))
	}
	for _, d := range shape {
		if d < 1 {
			l.errs = append(l.errs, fmt.Errorf("nn: parameter %s has shape %v; every dimension must be at least 1", p.Name, shape))
			break
		}
	}
	if init == nil {
		l.errs = append(l.errs, fmt.Errorf("nn: parameter %s has no Initializer; pass one, such as Zeros", p.Name))
	}
	l.names[p.Name] = true
	l.size = (l.size + ParamAlign - 1) / ParamAlign * ParamAlign
	p.Offset = l.size
	l.size = grown(l.size, shape)
	l.list = append(l.list, p)
	l.init = append(l.init, init)
	return p
}

// Statistic declares a running statistic; see [Param.Momentum], which must be greater
// than 0 and at most 1.
func (b *Builder) Statistic(name string, shape []int, init Initializer, momentum float32) *Param {
	p := b.Param(name, shape, init)
	if p.Momentum = momentum; !(momentum > 0 && momentum <= 1) {
		b.plans.errs = append(b.plans.errs, fmt.Errorf("nn: the momentum of statistic %s must be greater than 0 and at most 1, not %v", p.Name, momentum))
	}
	return p
}

// Len returns the number of elements in each arena for the parameters declared so far, or
// math.MaxInt/2 if there are more.
func (b *Builder) Len() int { return min(b.plans.size, maxElements) }

// Declared returns the parameters declared so far, in order. They have names and shapes,
// but no memory before Build.
func (b *Builder) Declared() []*Param { return slices.Clone(b.plans.list) }

// maxElements is more than any memory holds, and far from overflow.
const maxElements = math.MaxInt / 2

// grown returns size plus the number of elements of shape, at most maxElements.
func grown(size int, shape []int) int {
	n := 1
	for _, d := range shape {
		if d > 0 && n > maxElements/d {
			return maxElements
		}
		n *= d
	}
	return min(size+n, maxElements)
}

// Random returns the layer number to pass to [Stream]: 0 for the first layer that asks,
// then 1, and so on.
func (b *Builder) Random() uint32 {
	n := b.plans.random
	b.plans.random++
	return n
}

// NeedsInputGradient reports whether any parameter has been declared yet. If none has,
// nothing needs the gradient of the current layer's input, and the layer's Backprop may
// return the zero Tensor.
func (b *Builder) NeedsInputGradient() bool { return len(b.plans.list) > 0 }

// Build allocates the two arenas on backend, assigns every declared Param its part of
// them and sets initial weights. A Builder can build only once.
func (b *Builder) Build(backend Backend) (*Params, error) {
	l := b.plans
	if l.built {
		return nil, errors.New("nn: Build was called twice; a Builder serves one model")
	}
	if err := errors.Join(l.errs...); err != nil {
		return nil, err
	}
	if l.size >= maxElements/4 {
		return nil, errors.New("nn: the parameters do not fit into any memory; make the model smaller")
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

package graph

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// ReluReluSoftmax is models.ReluReluSoftmax without dropout.
func ReluReluSoftmax(b *Builder, x *gorgonia.Node) *gorgonia.Node {
	h := b.Rectify(b.Linear("layers.0", x))
	h = b.Rectify(b.Linear("layers.1", h))
	return b.Linear("layers.2", h)
}

// ConvNet is models.ConvNet for images x (rows, 1, height, width).
func ConvNet(b *Builder, x *gorgonia.Node) *gorgonia.Node {
	h := b.Conv2D("layers.2", b.Standardize(x, .1307, .3081), 1, 0)
	h = b.Rectify(b.MaxPool2D(h, 3, 3, 0))
	return b.Linear("layers.5", h)
}

// Linear is nn.Linear with the parameters path.W and path.b.
func (b *Builder) Linear(path string, x *gorgonia.Node) *gorgonia.Node {
	w, bias := b.param(path+".W"), b.param(path+".b")
	if b.err != nil {
		return nil
	}
	rows := x.Shape()[0]
	if x.Dims() != 2 {
		x = b.do(gorgonia.Reshape(x, tensor.Shape{rows, x.Shape().TotalSize() / rows}))
	}
	y := b.apply(x, func() (*gorgonia.Node, error) {
		wT, err := gorgonia.Transpose(w, 1, 0)
		if err != nil {
			return nil, err
		}
		return gorgonia.Mul(x, wT)
	})
	return b.apply(y, func() (*gorgonia.Node, error) { return gorgonia.BroadcastAdd(y, bias, nil, []byte{0}) })
}

// Conv2D is nn.Conv2D with the parameters path.W and path.b.
func (b *Builder) Conv2D(path string, x *gorgonia.Node, stride, padding int) *gorgonia.Node {
	w, bias := b.param(path+".W"), b.param(path+".b")
	if b.err != nil {
		return nil
	}
	shape := w.Shape()
	y := b.do(gorgonia.Conv2d(x, w, tensor.Shape{shape[2], shape[3]}, []int{padding, padding}, []int{stride, stride}, []int{1, 1}))
	bias = b.apply(y, func() (*gorgonia.Node, error) { return gorgonia.Reshape(bias, tensor.Shape{1, shape[0], 1, 1}) })
	return b.apply(y, func() (*gorgonia.Node, error) { return gorgonia.BroadcastAdd(y, bias, nil, []byte{0, 2, 3}) })
}

// MaxPool2D is nn.MaxPool2D.
func (b *Builder) MaxPool2D(x *gorgonia.Node, size, stride, padding int) *gorgonia.Node {
	return b.apply(x, func() (*gorgonia.Node, error) {
		return gorgonia.MaxPool2D(x, tensor.Shape{size, size}, []int{padding, padding}, []int{stride, stride})
	})
}

// Standardize is nn.Standardize.
func (b *Builder) Standardize(x *gorgonia.Node, mean, deviation float32) *gorgonia.Node {
	y := b.apply(x, func() (*gorgonia.Node, error) { return gorgonia.Sub(x, gorgonia.NewConstant(mean)) })
	return b.apply(y, func() (*gorgonia.Node, error) { return gorgonia.Div(y, gorgonia.NewConstant(deviation)) })
}

// Rectify is nn.Rectify.
func (b *Builder) Rectify(x *gorgonia.Node) *gorgonia.Node {
	return b.apply(x, func() (*gorgonia.Node, error) { return gorgonia.Rectify(x) })
}

// crossEntropy sums -log softmax at the target over rows, as the logarithm of the sum of
// exponentials minus the target's logit. It does not subtract the largest logit first,
// because logits in tests are small.
func (b *Builder) crossEntropy(logits, targets *gorgonia.Node) *gorgonia.Node {
	sums := b.do(gorgonia.Exp(logits))
	sums = b.apply(sums, func() (*gorgonia.Node, error) { return gorgonia.Sum(sums, 1) })
	sums = b.apply(sums, func() (*gorgonia.Node, error) { return gorgonia.Log(sums) })
	sums = b.apply(sums, func() (*gorgonia.Node, error) { return gorgonia.Sum(sums) })
	hits := b.do(gorgonia.HadamardProd(logits, targets))
	hits = b.apply(hits, func() (*gorgonia.Node, error) { return gorgonia.Sum(hits) })
	return b.apply(hits, func() (*gorgonia.Node, error) { return gorgonia.Sub(sums, hits) })
}

// param returns the node of a parameter.
func (b *Builder) param(name string) *gorgonia.Node {
	if n, ok := b.used[name]; ok {
		return n
	}
	w, ok := b.weights[name]
	if !ok {
		return b.do(nil, fmt.Errorf("no parameter %q in Weights; add it", name))
	}
	n := gorgonia.NodeFromAny(b.graph, w, gorgonia.WithName(name))
	b.names, b.used[name] = append(b.names, name), n
	return n
}

// apply runs f unless an earlier node failed.
func (b *Builder) apply(x *gorgonia.Node, f func() (*gorgonia.Node, error)) *gorgonia.Node {
	if b.err != nil || x == nil {
		return nil
	}
	return b.do(f())
}

// do records the first error and returns n.
func (b *Builder) do(n *gorgonia.Node, err error) *gorgonia.Node {
	if err != nil && b.err == nil {
		b.err = fmt.Errorf("graph: %w", err)
	}
	return n
}

package nn

type add struct{ branches }

// Add is y = first(x) + second(x) + ..., Thinc's add.v1. All layers get the same input and
// return rows of one shape. The parameters of layer i are in the scope "layers.i".
func Add(layers ...Layer) Layer { return &add{branches{layers: layers}} }

// Init tells every layer the output shape.
func (l *add) Init(in, out []int, b *Builder) ([]int, error) {
	made, err := l.declare(in, out, b)
	if err != nil {
		return nil, err
	}
	for i, shape := range made {
		if !sameShape(shape, made[0]) {
			return nil, b.errorf("layers.%d returns rows of shape %v, but layers.0 returns %v; only equal shapes can be added", i, shape, made[0])
		}
	}
	return outShape(made[0], out, b)
}

// Forward adds from left to right.
func (l *add) Forward(p *Pass, x Tensor) (Tensor, Backprop) {
	ys, backs := l.forward(p, x)
	y := ys[0]
	for i, next := range ys[1:] {
		sum := y.Data
		if i == 0 { // not in the memory of the first result, which its layer may need
			sum = p.Backend.Temp(y.Data.Len())
		}
		p.Backend.Add(sum, y.Data, next.Data)
		y.Data = sum
	}
	return y, func(dy Tensor) Tensor {
		return l.backward(p, x, backs, func(i int) Tensor {
			if i == 0 {
				return dy
			}
			d := dy // a layer may overwrite its gradient
			d.Data = p.Backend.Temp(dy.Data.Len())
			duplicate(p.Backend, d.Data, dy.Data)
			return d
		})
	}
}

package nn

// branches are layers that all get the same input, for Add and Concatenate.
type branches struct {
	layers []Layer
	wantDX bool
}

// declare runs Init of each layer, in the scopes "layers.0", "layers.1" and so on, and
// returns the shapes of their outputs.
func (l *branches) declare(in, want []int, b *Builder) (made [][]int, err error) {
	if len(l.layers) == 0 {
		return nil, b.errorf("there are no layers in it; add at least one")
	}
	l.wantDX = b.NeedsInputGradient()
	made = make([][]int, len(l.layers))
	for i, layer := range l.layers {
		scope := b.element(i)
		scope.mixed = true
		if made[i], err = scope.place(layer, in, want); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// forward runs the layers in order.
func (l *branches) forward(p *Pass, x Tensor) ([]Tensor, []Backprop) {
	ys, backs := make([]Tensor, len(l.layers)), make([]Backprop, len(l.layers))
	for i, layer := range l.layers {
		ys[i], backs[i] = layer.Forward(p, x)
	}
	return ys, backs
}

// backward runs the Backprops in reverse, so that gradients become final from the end of
// the arena, and adds up their results. dy returns the gradient of a layer's output.
func (l *branches) backward(p *Pass, x Tensor, backs []Backprop, dy func(i int) Tensor) Tensor {
	var sum Tensor
	for i := len(backs) - 1; i >= 0; i-- {
		switch dx := backs[i](dy(i)); {
		case dx.empty() || !l.wantDX:
		case sum.empty():
			sum = dx
		default:
			p.Backend.Add(sum.Data, sum.Data, dx.Data)
		}
	}
	if !sum.empty() {
		sum.Shape, sum.Lengths = x.Shape, x.Lengths
	}
	return sum
}

func (l *branches) checkInput(x Tensor) error {
	for _, layer := range l.layers {
		if err := CheckInput(layer, x); err != nil {
			return err
		}
	}
	return nil
}

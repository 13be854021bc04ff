package nn

// BatchNorm2D normalises each channel of images to mean 0 and variance 1, then scales it
// by G and shifts it by b; PyTorch's BatchNorm2d (Ioffe and Szegedy, 2015). A row is
// (channels, height, width), or (height, width) for one channel.
//
// While training, the mean and the variance are those of the rows of this pass: of one
// micro-batch of one rank, as in PyTorch's DistributedDataParallel without
// SyncBatchNorm. Results therefore depend on how many rows a micro-batch has, and N ranks
// equal one rank with N micro-batches bit for bit.
//
// Otherwise they are running_mean and running_var, which follow those of the training:
// value = (1-Momentum)·value + Momentum·statistic, where the statistic is the mean over
// all micro-batches of all ranks of a step, weighted by rows. They are parameters without a
// gradient (see [Param.Momentum]) and reach the other ranks with the gradients, so they are
// equal on all of them. The weight of the model's batches must be their number of rows.
// As in PyTorch, the variance in running_var is unbiased, and training on a single value
// per channel, one row of 1x1 images, is an error (see Backend.Fail).
type BatchNorm2D struct {
	// Momentum is the share of the new statistics in the running ones; 0 means 0.1.
	Momentum float32
	// Eps is added to the variance; 0 means 1e-5.
	Eps float32

	g, b           *Param
	mean, variance *Param // running
	plane          int
	eps            float32
	wantDX         bool
	path           string
}

// PyTorch's defaults.
const (
	defaultMomentum     = .1
	defaultBatchNormEps = 1e-5
)

// Init declares G, b, running_mean and running_var, with one element per channel each.
func (l *BatchNorm2D) Init(in, out []int, b *Builder) ([]int, error) {
	if l.g != nil {
		return nil, usedLayer(b)
	}
	shape := in
	if len(shape) == 2 {
		shape = []int{1, in[0], in[1]}
	}
	switch {
	case len(shape) != 3 || product(shape) < 1:
		return nil, b.errorf("rows of input have shape %v, but must be images (channels, height, width); use nn.Images to convert plain rows", in)
	case !(l.Momentum >= 0 && l.Momentum <= 1):
		return nil, b.errorf("Momentum must be from 0 to 1, not %v", l.Momentum)
	case !(l.Eps >= 0):
		return nil, b.errorf("Eps must be at least 0, not %v", l.Eps)
	}
	momentum := l.Momentum
	if momentum == 0 {
		momentum = defaultMomentum
	}
	if l.eps = l.Eps; l.eps == 0 {
		l.eps = defaultBatchNormEps
	}
	l.wantDX, l.plane, l.path = b.NeedsInputGradient(), shape[1]*shape[2], b.Path()
	channels := shape[:1]
	l.g, l.b = b.Param("G", channels, Ones), b.Param("b", channels, Zeros)
	l.mean, l.variance = b.Statistic("running_mean", channels, Zeros, momentum), b.Statistic("running_var", channels, Ones, momentum)
	return outShape(in, out, b)
}

// Forward returns rows of the same shape as x.
func (l *BatchNorm2D) Forward(p *Pass, x Tensor) (Tensor, Backprop) {
	m := Moments{Mean: l.mean.Values, Variance: l.variance.Values, Plane: l.plane, Eps: l.eps, Fixed: true}
	if p.Train && x.Rows() > 0 {
		if x.Rows()*l.plane == 1 {
			p.Backend.Fail(&LayerError{Path: l.path, Msg: "BatchNorm2D must have at least 2 values per channel to train, not 1; choose a batch size that leaves every micro-batch at least 2 rows, also in the last step of an epoch"})
		}
		channels := l.g.Values.Len()
		m.Mean, m.Variance, m.Fixed = p.Backend.Temp(channels), p.Backend.Temp(channels), false
		p.Backend.ChannelMoments(m, x.Data)
	}
	y := Tensor{Shape: x.Shape, Data: p.Backend.Temp(x.Data.Len()), Lengths: x.Lengths}
	p.Backend.BatchNorm(y.Data, x.Data, l.g.Values, l.b.Values, m)
	return y, func(dy Tensor) Tensor {
		p.Backend.BatchNormGrad(dy.Data, l.g.Grads, l.b.Grads, dy.Data, x.Data, l.g.Values, m)
		if !m.Fixed {
			l.follow(p, x.Rows(), m)
		}
		p.final(l.g.Offset)
		if !l.wantDX {
			return Tensor{}
		}
		return Tensor{Shape: x.Shape, Data: dy.Data, Lengths: x.Lengths}
	}
}

// follow puts the statistics of a pass, times its rows, where gradients would be. The
// backward pass does it, so that it does not happen in one that only evaluates.
func (l *BatchNorm2D) follow(p *Pass, images int, m Moments) {
	rows, n := float32(images/p.perRow()), float64(images*l.plane)
	p.Backend.Axpy(l.mean.Grads, rows, m.Mean)
	p.Backend.Axpy(l.variance.Grads, rows*float32(n/max(1, n-1)), m.Variance)
}

var _ Layer = (*BatchNorm2D)(nil)

package catalog

import (
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// imageFunctions are layers for images, and those that change the shape of rows. Thinc has
// none of them. Where PyTorch has one, so are its defaults.
var imageFunctions = []function{
	{"Images.v1", config.Func{
		Doc: "reads rows as images (channels, height, width)",
		Params: []config.Param{{Name: "channels", Type: config.Int, Default: 1, Doc: "number of channels"},
			widthParam("height", "rows of an image; null with width for square images"), widthParam("width", "columns of an image; null with height for square images")},
		Make: func(a config.Args) (any, error) {
			r := &reader{Args: a}
			return &nn.Images{Channels: r.count("channels"), Height: r.count("height"), Width: r.count("width")}, r.err
		}}},
	{"Standardize.v1", config.Func{
		Doc:    "(x - mean)/deviation with known constants",
		Params: []config.Param{number("mean", "subtracted from each element"), number("deviation", "divides each element; greater than 0")},
		Make: func(a config.Args) (any, error) {
			r := &reader{Args: a}
			r.positive("deviation")
			return &nn.Standardize{Mean: a.Float("mean"), Deviation: a.Float("deviation")}, r.err
		}}},
	{"Conv2D.v1", config.Func{
		Doc: "convolves images with learned square filters",
		Params: append([]config.Param{wholeNumber("nO", "number of filters, and so of output channels"), wholeNumber("size", "height and width of a filter"),
			{Name: "stride", Type: config.Int, Default: 1, Doc: "distance between neighbouring windows"}, paddingParam()},
			initializerParam("init_W", "initial filters; null for fan_in_uniform_init.v1"), initializerParam("init_b", "initial biases; null for fan_in_uniform_init.v1")),
		Make: func(a config.Args) (any, error) {
			r := &reader{Args: a}
			return &nn.Conv2D{
				Out: r.count("nO"), Size: r.count("size"), Stride: r.count("stride"), Padding: r.padding("padding"),
				InitW: r.initializer("init_W"), InitB: r.initializer("init_b"),
			}, r.err
		}}},
	{"MaxPool2D.v1", config.Func{
		Doc:    "the largest element of each square window of each channel",
		Params: []config.Param{wholeNumber("size", "height and width of a window"), strideParam(), paddingParam()},
		Make: func(a config.Args) (any, error) {
			r := &reader{Args: a}
			return &nn.MaxPool2D{Size: r.count("size"), Stride: r.count("stride"), Padding: r.padding("padding")}, r.err
		}}},
	{"AvgPool2D.v1", config.Func{
		Doc:    "the mean of each square window of each channel",
		Params: []config.Param{widthParam("size", "height and width of a window; null for the whole image"), strideParam(), paddingParam()},
		Make: func(a config.Args) (any, error) {
			r := &reader{Args: a}
			return &nn.AvgPool2D{Size: r.count("size"), Stride: r.count("stride"), Padding: r.padding("padding")}, r.err
		}}},
	{"BatchNorm2D.v1", config.Func{
		Doc: "normalises each channel over a micro-batch, then scales and shifts it (Ioffe and Szegedy, 2015)",
		Params: []config.Param{{Name: "momentum", Type: config.Float, Default: .1, Doc: "share of a step in the running statistics, at most 1"},
			{Name: "eps", Type: config.Float, Default: 1e-5, Doc: "added to the variance"}},
		Make: func(a config.Args) (any, error) {
			r := &reader{Args: a}
			momentum := r.positive("momentum")
			if momentum > 1 {
				r.fail("momentum", "must be at most 1, not %v", momentum)
			}
			return &nn.BatchNorm2D{Momentum: momentum, Eps: r.positive("eps")}, r.err
		}}},
	{"relu_activation.v1", config.Func{
		Doc:  "max(0, x), without weights",
		Make: func(config.Args) (any, error) { return &nn.Rectify{}, nil }}},
	{"Flatten.v1", config.Func{
		Doc:  "reads each row as one vector",
		Make: func(config.Args) (any, error) { return &nn.Flatten{}, nil }}},
	{"Reshape.v1", config.Func{
		Doc:    "reads each row as an array of another shape, such as positions (T, width)",
		Params: []config.Param{{Name: "shape", Type: config.List, Form: "list of whole numbers", Required: true, Doc: "shape of a row, as in [28, 28]"}},
		Make:   makeReshape}},
}

func makeReshape(a config.Args) (any, error) {
	l := &nn.Reshape{}
	for i, v := range a.List("shape") {
		n, ok := v.(int64)
		if !ok || n < 1 || n > 1<<31-1 {
			return nil, a.Errorf("shape", "number %d must be a whole number, at least 1, not %s", i+1, config.Describe(v))
		}
		l.Shape = append(l.Shape, int(n))
	}
	if l.Shape == nil {
		return nil, a.Errorf("shape", "the list is empty; name at least one dimension")
	}
	return l, nil
}

func strideParam() config.Param {
	return widthParam("stride", "distance between neighbouring windows; null for size")
}

func paddingParam() config.Param {
	return config.Param{Name: "padding", Type: config.Int, Default: 0, Doc: "rows and columns added on every side; below size"}
}

// padding reads a number of rows or columns that are added. nn compares it with the size.
func (r *reader) padding(name string) int {
	n := r.Int(name)
	if n < 0 {
		r.fail(name, "must be at least 0, not %d", n)
	}
	return n
}

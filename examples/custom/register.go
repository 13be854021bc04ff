package main

import (
	"errors"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// register adds the names that a config, or --data, can use besides the built-in ones.
func register(c *catalog.Catalog) error {
	return errors.Join(
		c.RegisterData("wave", catalog.DataKind{Usage: "wave", Doc: "points of a curve, made by this program", Train: makeWave,
			Test: func(arg string, _ bool) (catalog.Dataset, error) { return makeWave(arg, catalog.Options{}) }}),
		c.RegisterData("times", catalog.DataKind{Usage: "times:FILE", Doc: "a number from -1 to 1 per line", Unlabelled: true,
			Suffixes: []string{".txt"}, Input: findTimes}),
		c.Registry.Register("tasks", "curve.v1", config.Func{
			Doc: "regression of points (t, y) that measures the mean absolute error", Make: makeCurve,
			Params: []config.Param{{Name: "loss", Required: true, Form: "a loss (@losses)", Doc: "what to minimise, summed over points"}}}),
		c.Registry.Register("losses", "Huber.v1", config.Func{
			Doc: "squared error near 0 and absolute error farther away (Huber, 1964), so that outliers count less", Make: makeHuber,
			Params: []config.Param{{Name: "delta", Type: config.Float, Default: 1., Doc: "largest error that is squared"}}}),
		c.Registry.Register("layers", "sine_network.v1", config.Func{
			Doc: "perceptron with two hidden layers of sines (SIREN, Sitzmann et al., 2020)", Make: makeSineNetwork,
			Params: []config.Param{
				{Name: "width", Type: config.Int, Required: true, Doc: "units of each hidden layer"},
				{Name: "omega", Type: config.Float, Default: 8., Doc: "frequency of the first layer"},
			}}),
	)
}

func makeCurve(a config.Args) (any, error) {
	l, ok := a.Value("loss").(loss)
	if !ok {
		return nil, a.Errorf("loss", "it must be a section that names a loss (@losses), such as Huber.v1")
	}
	return curveTask(l), nil
}

func makeHuber(a config.Args) (any, error) {
	delta := float32(a.Float("delta"))
	if !(delta > 0) {
		return nil, a.Errorf("delta", "it must be above 0, got %v", delta)
	}
	return huber{delta}, nil
}

func makeSineNetwork(a config.Args) (any, error) {
	width := a.Int("width")
	if width < 1 {
		return nil, a.Errorf("width", "it must be at least 1, got %d", width)
	}
	return nn.Chain(
		&nn.Linear{Out: width}, &sine{omega: float32(a.Float("omega"))},
		&nn.Linear{Out: width}, &sine{omega: 1},
		&nn.Linear{},
	), nil
}

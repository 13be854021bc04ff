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
			Suffixes: []string{".times"}, Input: findTimes}),
		c.Registry.Register("tasks", "curve.v1", config.Func{
			Doc: "regression of points (t, y) that measures the mean absolute error", Make: makeCurve,
			Params: []config.Param{{Name: "loss", Required: true, Form: "a loss (@losses)", Doc: "what to minimise, summed over points"}}}),
		c.Registry.Register("losses", "Huber.v1", config.Func{
			Doc: "squared error near 0 and absolute error farther away (Huber, 1964), so that outliers count less", Make: makeHuber,
			Params: []config.Param{{Name: "delta", Type: config.Float, Default: 1., Doc: "largest error that is squared"}}}),
		c.Registry.Register("layers", "Sine.v1", config.Func{
			Doc: "sin(omega·x), between layers of a SIREN (Sitzmann et al., 2020)", Make: makeSine,
			Params: []config.Param{{Name: "omega", Type: config.Float, Default: 1., Doc: "frequency"}}}),
	)
}

func makeCurve(a config.Args) (any, error) {
	l, ok := a.Value("loss").(nn.ValueLoss)
	if !ok {
		return nil, a.Errorf("loss", "must be a section that names a loss of numbers (@losses), such as Huber.v1")
	}
	return curveTask(l), nil
}

func makeHuber(a config.Args) (any, error) {
	delta := float32(a.Float("delta"))
	if !(delta > 0) {
		return nil, a.Errorf("delta", "must be greater than 0, not %v", delta)
	}
	return huber{delta}, nil
}

func makeSine(a config.Args) (any, error) {
	return &sine{omega: float32(a.Float("omega"))}, nil
}

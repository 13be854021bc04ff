package catalog

import (
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// initializers are Thinc's, with the same names and arguments, and PyTorch's default.
var initializers = []function{
	initializer("zero_init.v1", "zeros", nn.Zeros),
	initializer("glorot_uniform_init.v1", "uniform in ±√(6/(shape[0]+shape[1])) (Glorot and Bengio, 2010); the shape of a filter counts times its area, here and below", nn.GlorotUniform),
	initializer("glorot_normal_init.v1", "normal, deviation √(2/(shape[0]+shape[1]))", nn.GlorotNormal),
	initializer("he_uniform_init.v1", "uniform in ±√(6/shape[1]) (He et al., 2015)", nn.HeUniform),
	initializer("he_normal_init.v1", "normal, deviation √(2/shape[1])", nn.HeNormal),
	initializer("lecun_uniform_init.v1", "uniform in ±√(3/shape[1])", nn.LecunUniform),
	initializer("lecun_normal_init.v1", "normal, deviation √(1/shape[1])", nn.LecunNormal),
	initializer("fan_in_uniform_init.v1", "uniform in ±1/√n with n inputs of an output: PyTorch's default for Linear and Conv2d", nn.FanInUniform),
	{"uniform_init.v1", config.Func{
		Doc: "uniform from lo to hi",
		Params: []config.Param{{Name: "lo", Type: config.Float, Default: -.1, Doc: "lower bound"},
			{Name: "hi", Type: config.Float, Default: .1, Doc: "upper bound, at least lo"}},
		Make: func(a config.Args) (any, error) {
			r := &reader{Args: a}
			lo, hi := r.finite("lo"), r.finite("hi")
			if lo > hi {
				r.fail("hi", "must be at least lo (%v), not %v", lo, hi)
			}
			return nn.Uniform(lo, hi), r.err
		}}},
	{"normal_init.v1", config.Func{
		Doc:    "normal with mean 0",
		Params: []config.Param{{Name: "mean", Type: config.Float, Default: 0., Doc: "the standard deviation, under the name that Thinc gives it"}},
		Make: func(a config.Args) (any, error) {
			r := &reader{Args: a}
			deviation := r.finite("mean")
			if deviation < 0 {
				r.fail("mean", "the standard deviation must be at least 0, not %v", deviation)
			}
			return nn.Normal(deviation), r.err
		}}},
}

// initializer is a function without arguments.
func initializer(name, doc string, init nn.Initializer) function {
	return function{name, config.Func{Doc: doc, Make: func(config.Args) (any, error) { return init, nil }}}
}

// initializerParam is an optional argument that names an initializer.
func initializerParam(name, doc string) config.Param {
	return config.Param{Name: name, Form: "initializer (@initializers)", Doc: doc, Is: func(v any) bool {
		_, ok := v.(nn.Initializer)
		return ok
	}}
}

// finite reads a number that float32 holds.
func (r *reader) finite(name string) float32 {
	f := float32(r.Float(name))
	if f-f != 0 {
		r.fail(name, "must be a float32, not %v", r.Float(name))
	}
	return f
}

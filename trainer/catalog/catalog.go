// Package catalog is where names become implementations: the functions that a
// config's @layers and @optimizers mean, and the datasets of --data.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// A Catalog has the built-in names. A program of one's own adds to Registry
// before it gives the catalog to cli.Main.
type Catalog struct {
	Registry *config.Registry
	err      error // of registering what is built in
}

// New is a catalog of everything that is built in.
func New() *Catalog {
	c := &Catalog{Registry: config.NewRegistry()}
	for _, f := range []struct {
		registry, name string
		config.Func
	}{
		{"layers", "relu_relu_softmax.v1", config.Func{
			Doc:  "perceptron with two hidden layers of rectified linear units, of Thinc's notebook",
			Make: makeReluReluSoftmax, Params: []config.Param{
				{Name: "hidden_width", Type: config.Int, Required: true, Doc: "units of each hidden layer"},
				{Name: "dropout", Type: config.Float, Required: true, Doc: "share of the units that is left out in a step"},
			}}},
		{"layers", "convnet.v1", config.Func{
			Doc:  "convolutional network of Ray's parameter server example, 1,960 parameters",
			Make: func(config.Args) (any, error) { return models.ConvNet(), nil }}},
		{"layers", "Softmax.v1", config.Func{
			Doc:  "softmax regression: one layer from pixels to classes",
			Make: func(config.Args) (any, error) { return nn.Chain(&nn.Softmax{}), nil }}},
		{"optimizers", "Adam.v1", config.Func{
			Doc:  "Adam (Kingma and Ba, 2015), as Thinc's",
			Make: makeAdam, Params: hyperParams("learn_rate", "L2", "beta1", "beta2", "eps", "grad_clip", "L2_is_weight_decay", "use_averages")}},
		{"optimizers", "RAdam.v1", config.Func{
			Doc:  "rectified Adam (Liu et al., 2020), as Thinc's",
			Make: makeRAdam, Params: hyperParams("learn_rate", "beta1", "beta2", "eps", "L2", "L2_is_weight_decay", "grad_clip", "use_averages")}},
		{"optimizers", "SGD.v1", config.Func{
			Doc:  "stochastic gradient descent, as Thinc's",
			Make: makeSGD, Params: hyperParams("learn_rate", "L2", "grad_clip", "L2_is_weight_decay", "use_averages")}},
	} {
		c.err = errors.Join(c.err, c.Registry.Register(f.registry, f.name, f.Func))
	}
	for _, s := range schedules {
		c.err = errors.Join(c.err, c.Registry.Register("schedules", s.name, s.Func))
	}
	return c
}

// optimizing is the arguments of Thinc's optimizers.
var optimizing = []config.Param{
	{Name: "learn_rate", Form: scheduled, Default: .001, Doc: "size of a step"},
	{Name: "beta1", Form: scheduled, Default: .9, Doc: "share of the mean gradient that a step keeps, below 1"},
	{Name: "beta2", Form: scheduled, Default: .999, Doc: "share of the mean squared gradient that a step keeps, below 1"},
	{Name: "eps", Form: scheduled, Default: 1e-8, Doc: "added to the root of the mean squared gradient"},
	{Name: "L2", Form: scheduled, Default: 0., Doc: "strength of regularization"},
	{Name: "L2_is_weight_decay", Type: config.Bool, Default: true, Doc: "L2 shrinks the weights; if false, it is added to the gradient"},
	{Name: "grad_clip", Form: scheduled, Default: 1., Doc: "longest gradient of a parameter; 0: any"},
	{Name: "use_averages", Type: config.Bool, Default: true, Doc: "also keep the running mean of the weights, in checkpoints"},
}

// scheduled is what a hyper-parameter may be.
const scheduled = "number, list or schedule"

// hyperParams returns arguments of optimizers in the order of names, which is Thinc's.
func hyperParams(names ...string) []config.Param {
	var out []config.Param
	for _, name := range names {
		i := slices.IndexFunc(optimizing, func(p config.Param) bool { return p.Name == name })
		out = append(out, optimizing[i])
	}
	return out
}

func makeReluReluSoftmax(a config.Args) (any, error) {
	return models.ReluReluSoftmax(a.Int("hidden_width"), float32(a.Float("dropout"))), nil
}

func makeAdam(a config.Args) (any, error) { return adam(a) }

// makeRAdam reads the same arguments with the same defaults.
func makeRAdam(a config.Args) (any, error) {
	o, err := adam(a)
	return optim.RAdam(o), err
}

func adam(a config.Args) (optim.Adam, error) {
	h, err := hyper(a, "eps", "beta1", "beta2")
	if err != nil {
		return optim.Adam{}, err
	}
	return optim.Adam{
		LearnRate: h["learn_rate"], Beta1: h["beta1"], Beta2: h["beta2"], Eps: h["eps"], L2: h["L2"], GradClip: h["grad_clip"],
		L2IsWeightDecay: a.Bool("L2_is_weight_decay"), UseAverages: a.Bool("use_averages"),
	}, nil
}

func makeSGD(a config.Args) (any, error) {
	h, err := hyper(a)
	if err != nil {
		return nil, err
	}
	return optim.SGD{
		LearnRate: h["learn_rate"], L2: h["L2"], GradClip: h["grad_clip"],
		L2IsWeightDecay: a.Bool("L2_is_weight_decay"), UseAverages: a.Bool("use_averages"),
	}, nil
}

// hyper reads the hyper-parameters that all optimizers take, and more. It finds
// those that make no sense at the first step: negative ones, and betas that are
// not below 1.
func hyper(a config.Args, more ...string) (map[string]optim.Schedule, error) {
	out := map[string]optim.Schedule{}
	for _, name := range append([]string{"learn_rate", "L2", "grad_clip"}, more...) {
		s, err := schedule(a, name)
		if err != nil {
			return nil, err
		}
		v := s(0)
		if v < 0 {
			return nil, a.Errorf(name, "it is %v, and must not be negative", v)
		}
		if strings.HasPrefix(name, "beta") && v >= 1 {
			return nil, a.Errorf(name, "it is %v, and must be below 1", v)
		}
		out[name] = s
	}
	return out, nil
}

// Layers is what the [model] section of a config describes.
func (c *Catalog) Layers(cfg *config.Config) (nn.Layer, error) {
	return resolve[nn.Layer](c, cfg, "model", "a layer (@layers)")
}

// Optimizer is what the [optimizer] section of a config describes.
func (c *Catalog) Optimizer(cfg *config.Config) (optim.Optimizer, error) {
	return resolve[optim.Optimizer](c, cfg, "optimizer", "an optimizer (@optimizers)")
}

func resolve[T any](c *Catalog, cfg *config.Config, section, want string) (T, error) {
	var none T
	if c.err != nil {
		return none, c.err
	}
	v, err := c.Registry.Resolve(cfg, section)
	if err != nil {
		return none, err
	}
	made, ok := v.(T)
	if !ok {
		e, _ := cfg.Entry(section)
		return none, &config.Error{Pos: e.Pos, Msg: fmt.Sprintf("section [%s] must name %s", section, want)}
	}
	return made, nil
}

// A Source is a dataset that a command line named.
type Source struct {
	// Name is how it was named: "digits" or "mnist:DIR".
	Name string
	// Info is what can be known about it without reading it.
	Info data.Info
	// Cache is what Open uses of data.OpenCache; "" is nothing.
	Cache string
	// Open reads it, and makes it first if it has to be made.
	Open func(ctx context.Context) (*data.Set, error)
}

// Data finds a dataset: "digits", made on this machine once, or "mnist:DIR",
// IDX files. The files are looked at, but not read, so that what is wrong with
// them is said before anything starts.
func (c *Catalog) Data(name string) (Source, error) {
	kind, arg, _ := strings.Cut(name, ":")
	switch {
	case name == digits:
		return Source{Name: name, Info: data.Info{TrainRows: 20_000, TestRows: 4_000, Height: 28, Width: 28}, Cache: data.DigitsName, Open: openDigits}, nil
	case kind == "mnist" && arg != "":
		info, err := data.Check(arg)
		if err != nil {
			return Source{}, err
		}
		return Source{Name: name, Info: info, Open: func(context.Context) (*data.Set, error) { return data.OpenMNIST(arg) }}, nil
	case kind == "idx":
		return Source{}, fmt.Errorf("data %q is for predict: training needs images and labels of two parts, as in mnist:DIR", name)
	case kind == "mnist":
		return Source{}, fmt.Errorf("data %q: name a directory with IDX files, as in mnist:DIR", name)
	}
	return Source{}, fmt.Errorf("data %q is not known: use digits (made here) or mnist:DIR (a directory with IDX files)", name)
}

// digits is the name of the dataset that is made here.
const digits = "digits"

// A TestSource is images that a trained model is to look at.
type TestSource struct {
	data.TestInfo
	// Cache is what Open uses of data.OpenCache; "" is nothing.
	Cache string
	// Open reads them, and makes them first if they have to be made.
	Open func(ctx context.Context) (*data.Images, error)
}

// Test finds the test rows of a dataset, with their labels if these are wanted:
// of "digits", of "mnist:DIR", whose training files it does not need, or all
// images of "idx:FILE", which have no labels. Like Data it looks at headers alone.
func (c *Catalog) Test(name string, labelled bool) (TestSource, error) {
	kind, arg, _ := strings.Cut(name, ":")
	switch {
	case name == digits:
		whole, err := c.Data(name)
		return TestSource{
			TestInfo: data.TestInfo{Rows: whole.Info.TestRows, Height: whole.Info.Height, Width: whole.Info.Width},
			Cache:    whole.Cache,
			Open: func(ctx context.Context) (*data.Images, error) {
				set, err := whole.Open(ctx)
				if err != nil {
					return nil, err
				}
				return set.Test, nil
			},
		}, err
	case kind == "mnist" && arg != "":
		info, err := data.CheckTest(arg, labelled)
		return TestSource{TestInfo: info, Open: func(context.Context) (*data.Images, error) { return data.OpenTest(arg, labelled) }}, err
	case kind == "idx" && arg != "" && labelled:
		return TestSource{}, fmt.Errorf("data %q has images without labels: name a directory with the labels as well, as in mnist:DIR", name)
	case kind == "idx" && arg != "":
		info, err := data.CheckImages(arg)
		return TestSource{TestInfo: info, Open: func(context.Context) (*data.Images, error) { return data.OpenImages(arg) }}, err
	case kind == "mnist" || kind == "idx":
		return TestSource{}, fmt.Errorf("data %q: name what to read, as in mnist:DIR or idx:FILE", name)
	case labelled:
		return TestSource{}, fmt.Errorf("data %q is not known: use digits (made here) or mnist:DIR (a directory with test images and labels)", name)
	}
	return TestSource{}, fmt.Errorf("data %q is not known: use digits (made here), mnist:DIR (a directory with test images) or idx:FILE (a file with images)", name)
}

func openDigits(ctx context.Context) (*data.Set, error) {
	cache, err := data.OpenCache()
	if err != nil {
		return nil, err
	}
	return cache.Digits(ctx)
}

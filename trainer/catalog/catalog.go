// Package catalog turns names into implementations: the functions named by a config's
// @layers, @architectures, @optimizers and @tasks, and the datasets of --data.
//
// A [Dataset] is rows that have been found but not read. A [Task] fits a network to a
// dataset, which makes a [Problem]: all that can be known before rows are in memory.
// Opening it gives [Rows], from which each rank makes its trainer.Task. What a file of
// weights says about itself makes a [Stored] model, with which rows are evaluated and
// predicted.
package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// A Catalog holds the built-in names. Your own program can add to Registry before it
// passes the catalog to cli.Main.
type Catalog struct {
	Registry *config.Registry
	data     map[string]DataKind // by kind, see RegisterData
	err      error               // from registering the built-in names
}

// New returns a catalog with everything that is built in.
func New() *Catalog {
	c := &Catalog{Registry: config.NewRegistry(), data: map[string]DataKind{}}
	for _, f := range []struct {
		registry, name string
		config.Func
	}{
		{"layers", "relu_relu_softmax.v1", config.Func{
			Doc:  "perceptron with two hidden ReLU layers, from Thinc's notebook",
			Make: makeReluReluSoftmax, Params: []config.Param{
				{Name: "hidden_width", Type: config.Int, Required: true, Doc: "units of each hidden layer"},
				{Name: "dropout", Type: config.Float, Required: true, Doc: "fraction of the units dropped in each step"},
			}}},
		{"layers", "convnet.v1", config.Func{
			Doc:  "convolutional network of Ray's parameter server example, 1,960 parameters",
			Make: func(config.Args) (any, error) { return models.ConvNet(), nil }}},
		{"tasks", imageTask, config.Func{
			Doc: "classification of images: cross-entropy of a network that ends in Softmax",
			Make: func(a config.Args) (any, error) {
				l, err := classLoss(a)
				return imageClassification{l}, err
			}, Params: []config.Param{lossParam(classLossName)}}},
		{"tasks", languageTask, config.Func{
			Doc:  "prediction of the next character of a text: cross-entropy of a network that ends in Softmax at each position",
			Make: makeLanguageModel, Params: []config.Param{
				{Name: "context", Type: config.Int, Default: 64, Doc: "characters of a row: the most that a prediction can depend on"},
				lossParam(sequenceLossName),
			}}},
		{"tasks", classificationTask, config.Func{
			Doc: "classification of rows with columns: cross-entropy of a network that ends in Softmax",
			Make: func(a config.Args) (any, error) {
				l, err := classLoss(a)
				return tableClassification{l}, err
			}, Params: []config.Param{lossParam(classLossName)}}},
		{"tasks", regressionTask, config.Func{
			Doc: "regression on rows with columns: squared error of a network that ends in one number",
			Make: func(a config.Args) (any, error) {
				l, err := valueLoss(a)
				return tableRegression{l}, err
			}, Params: []config.Param{lossParam(valueLossName)}}},
		{"optimizers", "Adam.v1", config.Func{
			Doc:  "Adam (Kingma and Ba, 2015), as in Thinc",
			Make: makeAdam, Params: hyperParams("learn_rate", "L2", "beta1", "beta2", "eps", "grad_clip", "L2_is_weight_decay", "use_averages")}},
		{"optimizers", "RAdam.v1", config.Func{
			Doc:  "rectified Adam (Liu et al., 2020), as in Thinc",
			Make: makeRAdam, Params: hyperParams("learn_rate", "beta1", "beta2", "eps", "L2", "L2_is_weight_decay", "grad_clip", "use_averages")}},
		{"optimizers", "SGD.v1", config.Func{
			Doc:  "stochastic gradient descent, as in Thinc",
			Make: makeSGD, Params: hyperParams("learn_rate", "L2", "grad_clip", "L2_is_weight_decay", "use_averages")}},
	} {
		c.err = errors.Join(c.err, c.Registry.Register(f.registry, f.name, f.Func))
	}
	for registry, functions := range map[string][]function{
		"schedules": schedules, "initializers": initializers, "losses": losses, "batchers": batchers,
		"layers":        slices.Concat(layerFunctions, imageFunctions, combinators),
		"architectures": slices.Concat(architectures, []function{parserArchitecture}),
		"tasks":         {entityTaskFunction},
	} {
		for _, f := range functions {
			c.err = errors.Join(c.err, c.Registry.Register(registry, f.name, f.Func))
		}
	}
	for _, k := range imageData {
		c.err = errors.Join(c.err, c.RegisterData(k.name, k.DataKind))
	}
	c.err = errors.Join(c.err, c.RegisterData("text", textData))
	c.err = errors.Join(c.err, c.RegisterData("ner", docData))
	c.err = errors.Join(c.err, c.RegisterData(tableData.name, tableData.DataKind))
	return c
}

// optimizerParams lists the arguments of Thinc's optimizers.
var optimizerParams = []config.Param{
	{Name: "learn_rate", Form: scheduled, Default: .001, Doc: "step size"},
	{Name: "beta1", Form: scheduled, Default: .9, Doc: "decay rate of the mean gradient, below 1"},
	{Name: "beta2", Form: scheduled, Default: .999, Doc: "decay rate of the mean squared gradient, below 1"},
	{Name: "eps", Form: scheduled, Default: 1e-8, Doc: "added to the root of the mean squared gradient"},
	{Name: "L2", Form: scheduled, Default: 0., Doc: "strength of regularization"},
	{Name: "L2_is_weight_decay", Type: config.Bool, Default: true, Doc: "L2 shrinks the weights; if false, it is added to the gradient"},
	{Name: "grad_clip", Form: scheduled, Default: 1., Doc: "largest norm of a parameter's gradient; 0 for no limit"},
	{Name: "use_averages", Type: config.Bool, Default: true, Doc: "also keep a moving average of the weights, and save it in checkpoints"},
}

// scheduled describes the values of a hyper-parameter.
const scheduled = "number, list or schedule"

// hyperParams returns optimizer arguments in the order of names, which is Thinc's order.
func hyperParams(names ...string) []config.Param {
	var out []config.Param
	for _, name := range names {
		i := slices.IndexFunc(optimizerParams, func(p config.Param) bool { return p.Name == name })
		out = append(out, optimizerParams[i])
	}
	return out
}

func makeReluReluSoftmax(a config.Args) (any, error) {
	width, dropout := a.Int("hidden_width"), a.Float("dropout")
	if width < 1 {
		return nil, a.Errorf("hidden_width", "must be at least 1, not %d", width)
	}
	if !(dropout >= 0 && dropout < 1) {
		return nil, a.Errorf("dropout", "must be at least 0 and less than 1, not %v", dropout)
	}
	return models.ReluReluSoftmax(width, float32(dropout)), nil
}

func makeAdam(a config.Args) (any, error) { return adam(a) }

// makeRAdam takes the same arguments with the same defaults as makeAdam.
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

// hyper reads the hyper-parameters common to all optimizers, and those in more. It
// rejects values that are invalid at the first step, with their place in the config: negative
// ones, and betas that are not below 1. Later steps are for optim.Checker, which knows how many
// there are.
func hyper(a config.Args, more ...string) (map[string]optim.Schedule, error) {
	out := map[string]optim.Schedule{}
	for _, name := range append([]string{"learn_rate", "L2", "grad_clip"}, more...) {
		s, err := schedule(a, name)
		if err != nil {
			return nil, err
		}
		v := s(0)
		if v < 0 {
			return nil, a.Errorf(name, "must be at least 0, not %v", v)
		}
		if strings.HasPrefix(name, "beta") && v >= 1 {
			return nil, a.Errorf(name, "must be less than 1, not %v", v)
		}
		out[name] = s
	}
	return out, nil
}

// Layers returns the model that the [model] section of a config describes. A single
// layer with weights counts as a chain of one: its weights are layers.0.W and so on.
func (c *Catalog) Layers(cfg *config.Config) (nn.Layer, error) {
	l, err := resolve[nn.Layer](c, cfg, "model", "a layer (@layers)")
	switch l.(type) {
	case *nn.Linear, *nn.Relu, *nn.Gelu, *nn.Maxout, *nn.Softmax, *nn.LayerNorm, *nn.Embed, *nn.HashEmbed, *nn.Positions, *nn.SelfAttention, *nn.Conv2D, *nn.BatchNorm2D:
		l = nn.Chain(l)
	}
	return l, err
}

// Optimizer returns the optimizer that the [optimizer] section of a config describes.
func (c *Catalog) Optimizer(cfg *config.Config) (optim.Optimizer, error) {
	return resolve[optim.Optimizer](c, cfg, "optimizer", "an optimizer (@optimizers)")
}

func resolve[T any](c *Catalog, cfg *config.Config, section, want string) (T, error) {
	var none T
	if c.err != nil {
		return none, c.err
	}
	v, err := c.Registry.Resolve(cfg, section)
	if _, there := cfg.Section(section); err != nil && !there {
		return none, fmt.Errorf("%w; add it, and name %s in it", err, want)
	}
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

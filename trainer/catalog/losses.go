package catalog

import (
	"fmt"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// Names of losses.
const (
	classLossName    = "CategoricalCrossentropy.v3"
	sequenceLossName = "SequenceCategoricalCrossentropy.v3"
	valueLossName    = "L2Distance.v1"
)

// losses are Thinc's, under its names and with its arguments, and two that Thinc has none
// of. Their values are an nn.ClassLoss or an nn.ValueLoss.
var losses = []function{
	{classLossName, config.Func{Doc: "cross-entropy of class probabilities", Params: entropyParams(), Make: makeCrossEntropy}},
	{sequenceLossName, config.Func{Doc: "cross-entropy of class probabilities, at each position of a sequence", Params: entropyParams(), Make: makeCrossEntropy}},
	{valueLossName, config.Func{Doc: "half the squared error of predicted numbers", Params: []config.Param{normalizeParam()},
		Make: func(a config.Args) (any, error) {
			r := &reader{Args: a}
			r.normalized()
			return nn.SquaredError{}, r.err
		}}},
	{"HuberLoss.v1", config.Func{
		Doc:    "half the squared error up to delta, linear beyond it, so that outliers count less (Huber, 1964)",
		Params: []config.Param{{Name: "delta", Type: config.Float, Default: 1., Doc: "largest error that is squared, in deviations of the target"}},
		Make: func(a config.Args) (any, error) {
			r := &reader{Args: a}
			return nn.HuberError{Delta: r.positive("delta")}, r.err
		}}},
	{"L1Distance.v1", config.Func{Doc: "the absolute error of predicted numbers", Make: func(config.Args) (any, error) { return nn.AbsoluteError{}, nil }}},
}

// entropyParams are the arguments of Thinc's cross-entropy.
func entropyParams() []config.Param {
	return []config.Param{
		normalizeParam(),
		{Name: "names", Type: config.List, Doc: "not supported, so it must be null: the data name the classes"},
		{Name: "missing_value", Form: "string or number", Doc: "not supported, so it must be null: every row needs a class"},
		{Name: "neg_prefix", Type: config.String, Doc: "not supported, so it must be null: every class is one that a row has"},
		{Name: "label_smoothing", Type: config.Float, Default: 0., Doc: "probability that the wrong classes should share, below 1 - 1/classes (Szegedy et al., 2016)"},
	}
}

func normalizeParam() config.Param {
	return config.Param{Name: "normalize", Type: config.Bool, Default: true, Doc: "divide gradients by the number of rows of all workers; it must be true"}
}

// normalized refuses what would make steps depend on the number of rows.
func (r *reader) normalized() {
	if !r.Bool("normalize") {
		r.fail("normalize", "must be true: gradients are divided by the number of rows of all workers, unless you use --reduce total")
	}
}

func makeCrossEntropy(a config.Args) (any, error) {
	r := &reader{Args: a}
	r.normalized()
	for _, name := range []string{"names", "missing_value", "neg_prefix"} {
		if r.Value(name) != nil {
			r.fail(name, "not supported; leave it out")
		}
	}
	smoothing := r.Float("label_smoothing")
	if !(smoothing >= 0 && float32(smoothing) < 1) {
		r.fail("label_smoothing", "must be at least 0 and less than 1 - 1/classes, not %v", smoothing)
	}
	return nn.CrossEntropy{Smoothing: float32(smoothing)}, r.err
}

// lossParam is the argument of a task that names its loss.
func lossParam(usual string) config.Param {
	return config.Param{Name: "loss", Form: "loss (@losses)", Doc: "what to minimise, the mean over rows; null for " + usual}
}

// classLoss reads the loss of a task that predicts classes; nil for null.
func classLoss(a config.Args) (nn.ClassLoss, error) {
	return lossOf[nn.ClassLoss](a, "classes, such as "+classLossName)
}

// valueLoss reads the loss of a task that predicts numbers; nil for null.
func valueLoss(a config.Args) (nn.ValueLoss, error) {
	return lossOf[nn.ValueLoss](a, "numbers, such as "+valueLossName+", HuberLoss.v1 or L1Distance.v1")
}

func lossOf[T any](a config.Args, what string) (T, error) {
	value := a.Value("loss")
	l, ok := value.(T)
	if value == nil || ok {
		return l, nil
	}
	return l, a.Errorf("loss", "must be a section that names a loss (@losses) of %s", what)
}

// checkSmoothing returns an error for a loss that cannot be minimised with a number of
// classes.
func checkSmoothing(l nn.ClassLoss, classes int) error {
	entropy, ok := l.(nn.CrossEntropy)
	if limit := 1 - 1/float64(classes); ok && entropy.Smoothing > 0 && !(float64(entropy.Smoothing) < limit) {
		return fmt.Errorf("task.loss.label_smoothing must be less than %.4g with %d classes, not %v", limit, classes, entropy.Smoothing)
	}
	return nil
}

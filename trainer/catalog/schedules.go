package catalog

import (
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// schedules are Thinc's schedules, with the same names and arguments.
var schedules = []function{
	{"constant.v1", config.Func{
		Doc:    "constant rate",
		Params: []config.Param{number("rate", "the rate")},
		Make: func(a config.Args) (any, error) {
			return optim.Constant(a.Float("rate")), nil
		}}},
	{"constant_then.v1", config.Func{
		Doc: "a constant rate for some steps, then another schedule from its first step",
		Params: []config.Param{number("rate", "rate of the first steps"), wholeNumber("steps", "number of those steps"),
			{Name: "schedule", Form: scheduled, Required: true, Doc: "schedule of the remaining steps"}},
		Make: func(a config.Args) (any, error) {
			then, err := schedule(a, "schedule")
			return optim.ConstantThen(a.Float("rate"), a.Int("steps"), then), err
		}}},
	{"decaying.v1", config.Func{
		Doc: "base_rate/(1 + decay*(step + t))",
		Params: []config.Param{number("base_rate", "rate of step 0"), number("decay", "how fast it falls"),
			{Name: "t", Type: config.Int, Default: 0, Doc: "offset of the first step"}},
		Make: func(a config.Args) (any, error) {
			return optim.Decaying(a.Float("base_rate"), a.Float("decay"), float64(a.Int("t"))), nil
		}}},
	{"compounding.v1", config.Func{
		Doc: "start*compound^step, limited by stop",
		Params: []config.Param{number("start", "rate of step 0"), number("stop", "limit of the rate"), number("compound", "factor per step"),
			{Name: "t", Type: config.Float, Default: 0., Doc: "ignored, as in Thinc 8"}},
		Make: func(a config.Args) (any, error) {
			return optim.Compounding(a.Float("start"), a.Float("stop"), a.Float("compound")), nil
		}}},
	{"warmup_linear.v1", config.Func{
		Doc: "linear from 0 to initial_rate, then back to 0",
		Params: []config.Param{number("initial_rate", "highest rate"), wholeNumber("warmup_steps", "steps until the highest rate"),
			wholeNumber("total_steps", "step from which the rate is 0")},
		Make: func(a config.Args) (any, error) {
			return optim.WarmupLinear(a.Float("initial_rate"), a.Int("warmup_steps"), a.Int("total_steps")), nil
		}}},
	{"slanted_triangular.v1", config.Func{
		Doc: "a short rise to max_rate, then a long fall (Howard and Ruder, 2018); after num_steps it stays, where Thinc's becomes negative",
		Params: []config.Param{number("max_rate", "highest rate"), wholeNumber("num_steps", "number of steps"),
			{Name: "cut_frac", Type: config.Float, Default: .1, Doc: "fraction of the steps in which the rate rises"},
			{Name: "ratio", Type: config.Int, Default: 32, Doc: "highest rate divided by the last"},
			{Name: "decay", Type: config.Float, Default: 1., Doc: "ignored, as in Thinc 8"},
			{Name: "t", Type: config.Float, Default: 0., Doc: "offset of the first step"}},
		Make: makeSlantedTriangular}},
	{"cyclic_triangular.v1", config.Func{
		Doc:    "from min_lr to max_lr and back, repeatedly (Smith, 2017)",
		Params: []config.Param{number("min_lr", "lowest rate"), number("max_lr", "highest rate"), wholeNumber("period", "steps from lowest to highest")},
		Make: func(a config.Args) (any, error) {
			if a.Int("period") < 1 {
				return nil, a.Errorf("period", "must be at least 1, not %d", a.Int("period"))
			}
			return optim.CyclicTriangular(a.Float("min_lr"), a.Float("max_lr"), a.Int("period")), nil
		}}},
}

func makeSlantedTriangular(a config.Args) (any, error) {
	if cut := a.Float("cut_frac"); cut <= 0 || cut >= 1 || int(cut*float64(a.Int("num_steps"))) < 1 {
		return nil, a.Errorf("cut_frac", "the rate must rise in at least one of the %d steps and not in all of them, got the fraction %v", a.Int("num_steps"), cut)
	}
	if r := a.Int("ratio"); r < 1 {
		return nil, a.Errorf("ratio", "must be at least 1, not %v", r)
	}
	return optim.SlantedTriangular(a.Float("max_rate"), a.Int("num_steps"), a.Float("cut_frac"), float64(a.Int("ratio")), a.Float("t")), nil
}

func number(name, doc string) config.Param {
	return config.Param{Name: name, Type: config.Float, Required: true, Doc: doc}
}

func wholeNumber(name, doc string) config.Param {
	return config.Param{Name: name, Type: config.Int, Required: true, Doc: doc}
}

// schedule reads an argument that is a number, a list of numbers (the last one is used
// for all later steps), or a schedule.
func schedule(a config.Args, name string) (optim.Schedule, error) {
	switch v := a.Value(name).(type) {
	case optim.Schedule:
		return v, nil
	case []any:
		values := make([]float64, len(v))
		for i, x := range v {
			n, ok := float(x)
			if !ok {
				return nil, a.Errorf(name, "expected a list of numbers, but number %d is %s", i+1, config.Describe(x))
			}
			values[i] = n
		}
		if len(values) == 0 {
			return nil, a.Errorf(name, "the list is empty")
		}
		return func(step int) float64 { return values[min(step, len(values)-1)] }, nil
	default:
		n, ok := float(v)
		if !ok {
			return nil, a.Errorf(name, "expected a number, a list of numbers or a schedule, got %s", config.Describe(v))
		}
		return optim.Constant(n), nil
	}
}

func float(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case uint64:
		return float64(v), true
	case int:
		return float64(v), true
	}
	return 0, false
}

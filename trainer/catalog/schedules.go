package catalog

import (
	"fmt"

	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// schedules are Thinc's, under their names and with their arguments.
var schedules = []struct {
	name string
	config.Func
}{
	{"constant.v1", config.Func{Params: numbers("rate"), Make: func(a config.Args) (any, error) {
		return optim.Constant(a.Float("rate")), nil
	}}},
	{"constant_then.v1", config.Func{
		Params: append(numbers("rate"), whole("steps"), config.Param{Name: "schedule", Type: config.Any, Required: true}),
		Make: func(a config.Args) (any, error) {
			then, err := schedule(a, "schedule")
			return optim.ConstantThen(a.Float("rate"), a.Int("steps"), then), err
		}}},
	{"decaying.v1", config.Func{Params: append(numbers("base_rate", "decay"), offset), Make: func(a config.Args) (any, error) {
		return optim.Decaying(a.Float("base_rate"), a.Float("decay"), a.Float("t")), nil
	}}},
	{"compounding.v1", config.Func{Params: append(numbers("start", "stop", "compound"), offset), Make: func(a config.Args) (any, error) {
		s := optim.Compounding(a.Float("start"), a.Float("stop"), a.Float("compound"))
		if t := a.Float("t"); t != 0 {
			return nil, a.Errorf("t", "it is %v; a compounding rate that begins later is one with another start", t)
		}
		return s, nil
	}}},
	{"warmup_linear.v1", config.Func{Params: append(numbers("initial_rate"), whole("warmup_steps"), whole("total_steps")), Make: func(a config.Args) (any, error) {
		return optim.WarmupLinear(a.Float("initial_rate"), a.Int("warmup_steps"), a.Int("total_steps")), nil
	}}},
	{"slanted_triangular.v1", config.Func{
		Params: append(numbers("max_rate"), whole("num_steps"),
			config.Param{Name: "cut_frac", Type: config.Float, Default: .1}, config.Param{Name: "ratio", Type: config.Float, Default: 32.}, offset),
		Make: func(a config.Args) (any, error) {
			if cut := a.Float("cut_frac"); cut <= 0 || cut >= 1 || int(cut*float64(a.Int("num_steps"))) < 1 {
				return nil, a.Errorf("cut_frac", "it is %v: the share of the %d steps in which the rate rises must be one step at least, and not all", cut, a.Int("num_steps"))
			}
			if r := a.Float("ratio"); r <= 0 {
				return nil, a.Errorf("ratio", "it is %v, and must be positive", r)
			}
			return optim.SlantedTriangular(a.Float("max_rate"), a.Int("num_steps"), a.Float("cut_frac"), a.Float("ratio"), a.Float("t")), nil
		}}},
	{"cyclic_triangular.v1", config.Func{Params: append(numbers("min_lr", "max_lr"), whole("period")), Make: func(a config.Args) (any, error) {
		if a.Int("period") < 1 {
			return nil, a.Errorf("period", "it is %d, and must be at least 1", a.Int("period"))
		}
		return optim.CyclicTriangular(a.Float("min_lr"), a.Float("max_lr"), a.Int("period")), nil
	}}},
}

// offset is the step from which a schedule counts.
var offset = config.Param{Name: "t", Type: config.Float, Default: 0.}

func numbers(names ...string) []config.Param {
	out := make([]config.Param, len(names), len(names)+3)
	for i, name := range names {
		out[i] = config.Param{Name: name, Type: config.Float, Required: true}
	}
	return out
}

func whole(name string) config.Param {
	return config.Param{Name: name, Type: config.Int, Required: true}
}

// schedule is an argument that may be a number, a list of numbers of which the
// last stays, or one of the schedules.
func schedule(a config.Args, name string) (optim.Schedule, error) {
	switch v := a.Value(name).(type) {
	case optim.Schedule:
		return v, nil
	case []any:
		values := make([]float64, len(v))
		for i, x := range v {
			n, ok := number(x)
			if !ok {
				return nil, a.Errorf(name, "a list of numbers is expected, number %d is %v", i+1, x)
			}
			values[i] = n
		}
		if len(values) == 0 {
			return nil, a.Errorf(name, "the list is empty")
		}
		return func(step int) float64 { return values[min(step, len(values)-1)] }, nil
	default:
		n, ok := number(v)
		if !ok {
			return nil, a.Errorf(name, "a number, a list of numbers or one of the schedules is expected, got %v", described(v))
		}
		return optim.Constant(n), nil
	}
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case int64:
		return float64(v), true
	case int:
		return float64(v), true
	}
	return 0, false
}

func described(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case string:
		return fmt.Sprintf("the string %q", v)
	case bool:
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("a %T", v)
}

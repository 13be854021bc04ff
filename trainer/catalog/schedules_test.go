package catalog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer/catalog"
)

// rates returns the learn rates of some steps under a config's optimizer.
func rates(t *testing.T, learnRate string, steps ...int) []float64 {
	o, err := catalog.New().Optimizer(parse(t, "[optimizer]\n@optimizers = \"SGD.v1\"\n"+learnRate))
	require.NoError(t, err, learnRate)
	var out []float64
	for _, s := range steps {
		out = append(out, o.(optim.SGD).LearnRate(s))
	}
	return out
}

func TestLearnRates(t *testing.T) {
	section := func(name, args string) string {
		return "[optimizer.learn_rate]\n@schedules = \"" + name + "\"\n" + args
	}
	for want, c := range map[string]struct {
		text  string
		steps []int
		rates []float64
	}{
		"whole number":  {"learn_rate = 1", []int{0, 9}, []float64{1, 1}},
		"list":          {"learn_rate = [3, 2, 0.5]", []int{0, 1, 2, 9}, []float64{3, 2, .5, .5}},
		"inline":        {`learn_rate = {"@schedules": "constant.v1", "rate": 0.25}`, []int{7}, []float64{.25}},
		"warmup_linear": {section("warmup_linear.v1", "initial_rate = 1\nwarmup_steps = 4\ntotal_steps = 8\n"), []int{0, 1, 4, 6, 9}, []float64{0, .25, 1, .5, 0}},
		"decaying":      {section("decaying.v1", "base_rate = 1\ndecay = 1\n"), []int{0, 1, 3}, []float64{1, .5, .25}},
		"compounding":   {section("compounding.v1", "start = 1\nstop = 5\ncompound = 2\n"), []int{0, 1, 2, 3}, []float64{1, 2, 4, 5}},
		"cyclic":        {section("cyclic_triangular.v1", "min_lr = 0\nmax_lr = 1\nperiod = 2\n"), []int{0, 1, 2, 3}, []float64{.5, 1, .5, 0}},
		"then": {section("constant_then.v1", "rate = 3\nsteps = 2\n[optimizer.learn_rate.schedule]\n@schedules = \"decaying.v1\"\nbase_rate = 1\ndecay = 1\n"),
			[]int{1, 2, 3}, []float64{3, 1, .5}},
	} {
		require.InDeltaSlice(t, c.rates, rates(t, c.text, c.steps...), 1e-12, want)
	}
	slanted := rates(t, section("slanted_triangular.v1", "max_rate = 1\nnum_steps = 20\n"), 0, 1, 19)
	require.Less(t, slanted[0], slanted[1])
	require.InDelta(t, 1, slanted[1], 1e-12)
	require.Less(t, slanted[2], .1)
}

func TestLearnRateMistakes(t *testing.T) {
	for text, want := range map[string]string{
		`learn_rate = "fast"`:                                  `expected a number, a list of numbers or a schedule, got the string "fast"`,
		"learn_rate = null":                                    "got null",
		"learn_rate = []":                                      "the list is empty",
		`learn_rate = [1, "x"]`:                                `number 2 is the string "x"`,
		"learn_rate = [-1]":                                    "must be at least 0, not -",
		`learn_rate = {"@schedules": "constant.v1"}`:           `needs the argument "rate"`,
		`learn_rate = {"@schedules": "constnt.v1", "rate": 1}`: `did you mean "constant.v1"?`,
		`learn_rate = {"@optimizers": "SGD.v1"}`:               "got a Go value of type optim.SGD",
		`L2 = {"@schedules": "cyclic_triangular.v1", "min_lr": 0, "max_lr": 1, "period": 0}`: "must be at least 1",
		`L2 = {"@schedules": "slanted_triangular.v1", "max_rate": 1, "num_steps": 5}`:        "at least one of the 5 steps",
		`L2 = {"@schedules": "constant_then.v1", "rate": 1, "steps": 5, "schedule": "x"}`:    `got the string "x"`,
	} {
		_, err := catalog.New().Optimizer(parse(t, "[optimizer]\n@optimizers = \"SGD.v1\"\n"+text+"\n"))
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, "test.cfg:", text)
	}
}

func TestModelsWithoutArguments(t *testing.T) {
	for _, name := range []string{"convnet.v1", "Softmax.v1"} {
		layers, err := catalog.New().Layers(parse(t, "[model]\n@layers = \""+name+"\"\n"))
		require.NoError(t, err)
		require.NotNil(t, layers)
	}
}

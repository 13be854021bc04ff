package catalog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// lossOf resolves a section that names a loss.
func lossOf(t *testing.T, args string) (any, error) {
	return catalog.New().Registry.Resolve(parse(t, "[x]\n@losses = "+args+"\n"), "x")
}

func TestLosses(t *testing.T) {
	for args, want := range map[string]any{
		`"CategoricalCrossentropy.v3"`:                              nn.CrossEntropy{},
		"\"CategoricalCrossentropy.v3\"\nlabel_smoothing = 0.1":     nn.CrossEntropy{Smoothing: .1},
		`"SequenceCategoricalCrossentropy.v3"`:                      nn.CrossEntropy{},
		"\"SequenceCategoricalCrossentropy.v3\"\nneg_prefix = null": nn.CrossEntropy{},
		"\"L2Distance.v1\"\nnormalize = true":                       nn.SquaredError{},
		`"L1Distance.v1"`:                                           nn.AbsoluteError{},
		`"HuberLoss.v1"`:                                            nn.HuberError{Delta: 1},
		"\"HuberLoss.v1\"\ndelta = 0.5":                             nn.HuberError{Delta: .5},
	} {
		got, err := lossOf(t, args)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for args, want := range map[string]string{
		"\"L2Distance.v1\"\nnormalize = false":                       ":3: x.normalize: must be true: gradients are divided by",
		"\"CategoricalCrossentropy.v3\"\nnormalize = false":          "x.normalize: must be true",
		"\"CategoricalCrossentropy.v3\"\nnames = [\"a\"]":            "x.names: not supported; leave it out",
		"\"CategoricalCrossentropy.v3\"\nmissing_value = 0":          "x.missing_value: not supported",
		"\"SequenceCategoricalCrossentropy.v3\"\nneg_prefix = \"!\"": "x.neg_prefix: not supported",
		"\"CategoricalCrossentropy.v3\"\nlabel_smoothing = 1":        "x.label_smoothing: must be at least 0 and less than 1 - 1/classes, not 1",
		"\"CategoricalCrossentropy.v3\"\nlabel_smoothing = -0.1":     "x.label_smoothing: must be at least 0",
		"\"HuberLoss.v1\"\ndelta = 0":                                "x.delta: must be greater than 0",
	} {
		_, err := lossOf(t, args)
		require.ErrorContains(t, err, want)
	}
}

// These are the arguments and defaults of Thinc 8.3.6, in its order.
func TestLossDefaultsEqualThinc(t *testing.T) {
	const entropy = "normalize = true\nnames = null\nmissing_value = null\nneg_prefix = null\nlabel_smoothing = 0.0\n"
	for name, want := range map[string]string{
		"CategoricalCrossentropy.v3": entropy, "SequenceCategoricalCrossentropy.v3": entropy, "L2Distance.v1": "normalize = true\n",
	} {
		text := fmt.Sprintf("[x]\n@losses = %q\n", name)
		filled, err := catalog.New().Registry.Fill(parse(t, text))
		require.NoError(t, err)
		require.Equal(t, text+want, filled.Text())
	}
}

// shapes writes a CSV file with a class of three and a number to predict.
func shapes(t *testing.T) string {
	text := "x,z,kind,value\n"
	for i := range 60 {
		text += fmt.Sprintf("%d,%d,%c,%d\n", i*i%17, i%7, 'a'+i*i%17%3, i*i%17+3*(i%7))
	}
	path := filepath.Join(t.TempDir(), "shapes.csv")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// problem returns the problem of a perceptron on a column of shapes.
func problem(t *testing.T, task, target, last string) (catalog.Problem, error) {
	c := catalog.New()
	d, err := c.Data("csv:"+shapes(t), catalog.Options{Target: target})
	require.NoError(t, err)
	return c.Problem(parse(t, task+chain("Relu.v1 nO = 5", last)), d)
}

// learned returns the loss, the gradients and the counts of the first step.
func learned(t *testing.T, task, target, last string) (loss float32, gradients []float32, counts nn.Counts, metrics []trainer.Metric) {
	p, err := problem(t, task, target, last)
	require.NoError(t, err)
	rows, err := p.Open(t.Context())
	require.NoError(t, err)
	b := cpu.New(cpu.Options{})
	made, err := rows.Task(catalog.Seat{Backend: b, Size: 1, Micro: 1, Batch: 16, EvalBatch: 16, Seed: 3})
	require.NoError(t, err)
	_, err = made.Load(0, 0)
	require.NoError(t, err)
	sum, _, err := made.Learn(&nn.Pass{Backend: b, Train: true})
	require.NoError(t, err)
	counts, err = trainer.Score(t.Context(), b, made)
	require.NoError(t, err)
	return sum.Float32s()[0], made.Params().Grads.Float32s(), counts, made.Metrics(counts)
}

// A task minimises the loss that its section names. The usual one has the bits of none,
// and metrics do not depend on the loss.
func TestTasksUseTheirLoss(t *testing.T) {
	for _, c := range []struct{ task, target, last, usual, other string }{
		{"classification.v1", "kind", "Softmax.v1 init_W = {\"@initializers\": \"glorot_uniform_init.v1\"}", "CategoricalCrossentropy.v3", "\"CategoricalCrossentropy.v3\"\nlabel_smoothing = 0.2"},
		{"regression.v1", "value", "Linear.v1", "L2Distance.v1", "\"HuberLoss.v1\"\ndelta = 0.2"},
		{"regression.v1", "value", "Linear.v1", "L2Distance.v1", `"L1Distance.v1"`},
	} {
		section := fmt.Sprintf("[task]\n@tasks = %q\n", c.task)
		loss, gradients, counts, metrics := learned(t, section, c.target, c.last)
		usual, same, sums, _ := learned(t, section+fmt.Sprintf("[task.loss]\n@losses = %q\n", c.usual), c.target, c.last)
		require.Equal(t, loss, usual)
		require.Equal(t, gradients, same)
		require.Equal(t, counts, sums)
		other, differ, sums, still := learned(t, section+"[task.loss]\n@losses = "+c.other+"\n", c.target, c.last)
		require.NotEqual(t, loss, other)
		require.NotEqual(t, gradients, differ)
		require.NotEqual(t, counts[nn.CountLoss], sums[nn.CountLoss])
		require.Equal(t, metrics, still)
	}
}

// A loss that a task cannot minimise is an error before anything starts.
func TestUnsuitableLosses(t *testing.T) {
	softmax, linear := "Softmax.v1", "Linear.v1"
	for want, c := range map[string][4]string{
		"task.loss: must be a section that names a loss (@losses) of classes, such as CategoricalCrossentropy.v3": {"classification.v1", "kind", softmax, `"L2Distance.v1"`},
		"task.loss: must be a section that names a loss (@losses) of numbers, such as L2Distance.v1":              {"regression.v1", "value", linear, `"SequenceCategoricalCrossentropy.v3"`},
		"task.loss.label_smoothing must be less than 0.6667 with 3 classes, not 0.7":                              {"classification.v1", "kind", softmax, "\"CategoricalCrossentropy.v3\"\nlabel_smoothing = 0.7"},
	} {
		_, err := problem(t, fmt.Sprintf("[task]\n@tasks = %q\n[task.loss]\n@losses = %s\n", c[0], c[3]), c[1], c[2])
		require.ErrorContains(t, err, want)
	}
	c := catalog.New()
	for data, task := range map[string]string{"digits": "image_classification.v1", "text:losses_test.go": "language_model.v1"} {
		d, err := c.Data(data, catalog.Options{})
		require.NoError(t, err)
		for want, loss := range map[string]string{
			"of classes, such as":            `"HuberLoss.v1"`,
			"task.loss.label_smoothing must": "\"CategoricalCrossentropy.v3\"\nlabel_smoothing = 0.999",
		} {
			_, err = c.Problem(parse(t, fmt.Sprintf("[task]\n@tasks = %q\n[task.loss]\n@losses = %s\n", task, loss)+chain("Softmax.v1")), d)
			require.ErrorContains(t, err, want, "%s %s", task, loss)
		}
	}
}

// A loss of a user's own program works in a built-in task.
func TestOwnLoss(t *testing.T) {
	c := catalog.New()
	require.NoError(t, c.Registry.Register("losses", "Own.v1", ownLoss))
	d, err := c.Data("csv:"+shapes(t), catalog.Options{Target: "value"})
	require.NoError(t, err)
	p, err := c.Problem(parse(t, "[task]\n@tasks = \"regression.v1\"\n[task.loss]\n@losses = \"Own.v1\"\n"+chain("Linear.v1")), d)
	require.NoError(t, err)
	b := cpu.New(cpu.Options{})
	probe, err := p.Probe(b)
	require.NoError(t, err)
	require.NoError(t, probe.Learn(&nn.Pass{Backend: b, Train: true}, 3))
	require.Equal(t, []float32{21}, probe.Params.Lookup("layers.0.b").Grads.Float32s())
}

// sevens is a loss whose gradient is 7 everywhere.
type sevens struct{}

func (sevens) OfValues(b nn.Backend, dy, loss, y, t nn.Buffer) { b.Rescale(dy, y, 0, 7) }

var ownLoss = config.Func{Doc: "for tests", Make: func(config.Args) (any, error) { return sevens{}, nil }}

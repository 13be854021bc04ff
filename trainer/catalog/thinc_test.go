package catalog_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// affine has the defaults that the layers with weights share.
const affine = "nO = null\nnI = null\ninit_W = null\ninit_b = null\n"

// registry.fill of Thinc 8.3.14 with confection 1.3.4 printed these values.
func TestFillEqualsThinc(t *testing.T) {
	for text, want := range map[string]string{
		"[optimizer]\n@optimizers = \"Adam.v1\"\n": `learn_rate = 0.001
L2 = 0.0
beta1 = 0.9
beta2 = 0.999
eps = 1e-08
grad_clip = 1.0
L2_is_weight_decay = true
use_averages = true
`,
		"[optimizer]\n@optimizers = \"RAdam.v1\"\n": `learn_rate = 0.001
beta1 = 0.9
beta2 = 0.999
eps = 1e-08
L2 = 0.0
L2_is_weight_decay = true
grad_clip = 1.0
use_averages = true
`,
		"[optimizer]\n@optimizers = \"SGD.v1\"\nlearn_rate = 0.5\n": `L2 = 0.0
grad_clip = 1.0
L2_is_weight_decay = true
use_averages = true
`,
		"[x]\n@schedules = \"constant.v1\"\nrate = 1\n":                                                   "",
		"[x]\n@schedules = \"constant_then.v1\"\nrate = 1\nsteps = 2\nschedule = [1.0]\n":                 "",
		"[x]\n@schedules = \"decaying.v1\"\nbase_rate = 1\ndecay = 0.5\n":                                 "t = 0\n",
		"[x]\n@schedules = \"compounding.v1\"\nstart = 1\nstop = 2\ncompound = 1.5\n":                     "t = 0.0\n",
		"[x]\n@schedules = \"warmup_linear.v1\"\ninitial_rate = 1\nwarmup_steps = 2\ntotal_steps = 8\n":   "",
		"[x]\n@schedules = \"slanted_triangular.v1\"\nmax_rate = 1\nnum_steps = 20\n":                     "cut_frac = 0.1\nratio = 32\ndecay = 1.0\nt = 0.0\n",
		"[x]\n@schedules = \"slanted_triangular.v1\"\nmax_rate = 1\nnum_steps = 20\ndecay = 0.5\nt = 2\n": "cut_frac = 0.1\nratio = 32\n",
		"[x]\n@schedules = \"cyclic_triangular.v1\"\nmin_lr = 0\nmax_lr = 1\nperiod = 2\n":                "",
		"[x]\n@layers = \"Linear.v1\"\n":                                                                  affine,
		"[x]\n@layers = \"Softmax.v1\"\n":                                                                 affine,
		"[x]\n@layers = \"Relu.v1\"\n":                                                                    affine + "dropout = null\nnormalize = false\n",
		"[x]\n@layers = \"Gelu.v1\"\n":                                                                    affine + "dropout = null\nnormalize = false\n",
		"[x]\n@layers = \"Maxout.v1\"\n":                                                                  "nO = null\nnI = null\nnP = 3\ninit_W = null\ninit_b = null\ndropout = null\nnormalize = false\n",
		"[x]\n@layers = \"Dropout.v1\"\n":                                                                 "rate = 0.0\n",
		"[x]\n@layers = \"Embed.v1\"\nnV = 5\n":                                                           "nO = null\ncolumn = null\ninitializer = null\ndropout = null\n",
		"[x]\n@initializers = \"uniform_init.v1\"\n":                                                      "lo = -0.1\nhi = 0.1\n",
		"[x]\n@initializers = \"lecun_normal_init.v1\"\n":                                                 "",
	} {
		filled, err := catalog.New().Registry.Fill(parse(t, text))
		require.NoError(t, err)
		require.Equal(t, text+want, filled.Text())
	}
}

// Blocks inside blocks are filled as Thinc 8.3.4 fills them, and mean the same afterwards.
func TestFillNestedLayers(t *testing.T) {
	const text = `[x]
@layers = "chain.v1"

[x.*]

[x.*.a]
@layers = "clone.v1"
n = 2

[x.*.a.orig]
@layers = "residual.v1"

[x.*.a.orig.layer]
@layers = "Linear.v1"
nO = 3

[x.*.d]
@layers = "concatenate.v1"

[x.*.d.*]

[x.*.d.*.e]
@layers = "Softmax.v1"
nO = 2
`
	filled, err := catalog.New().Registry.Fill(parse(t, text))
	require.NoError(t, err)
	rest := strings.TrimPrefix(affine, "nO = null\n")
	want := strings.NewReplacer("nO = 3\n", "nO = 3\n"+rest, "nO = 2\n", "nO = 2\n"+rest).Replace(text)
	require.Equal(t, want, filled.Text())
	again, err := catalog.New().Registry.Fill(parse(t, filled.Text()))
	require.NoError(t, err)
	require.Equal(t, want, again.Text())
}

// The rates equal those of Thinc 8.3.14. It accepts the arguments decay and t here but
// uses only t of slanted_triangular.v1.
func TestRatesEqualThinc(t *testing.T) {
	for text, want := range map[string][]float64{
		`"compounding.v1", "start": 1, "stop": 50, "compound": 1.5, "t": 3`: {1, 1.5, 2.25, 3.375},
		`"slanted_triangular.v1", "max_rate": 1, "num_steps": 20, "decay": 0.5, "t": 2, "ratio": 4`: {
			0.9583333333333333, 0.9166666666666666, 0.875, 0.8333333333333334},
		`"decaying.v1", "base_rate": 1, "decay": 0.5, "t": 3`: {0.4, 0.3333333333333333, 0.2857142857142857, 0.25},
	} {
		require.InDeltaSlice(t, want, rates(t, `learn_rate = {"@schedules": `+text+"}\n", 0, 1, 2, 3), 1e-15, text)
	}
	_, err := catalog.New().Optimizer(parse(t, `[optimizer]
@optimizers = "SGD.v1"
learn_rate = {"@schedules": "slanted_triangular.v1", "max_rate": 1, "num_steps": 20, "ratio": 4.5}
`))
	require.ErrorContains(t, err, "optimizer.learn_rate.ratio: expected a whole number, got 4.5")
}

// Every function and argument has a description.
func TestEverythingIsDocumented(t *testing.T) {
	r := catalog.New().Registry
	for _, registry := range r.Registries() {
		for _, name := range r.Names(registry) {
			require.NotEmpty(t, r.Doc(registry, name), name)
			params, _ := r.Params(registry, name)
			for _, p := range params {
				require.NotEmpty(t, p.Doc, "%s: %s", name, p.Name)
				require.True(t, p.Type != config.Any || p.Form != "", "%s: %s takes any value; set Form to say which", name, p.Name)
			}
		}
	}
}

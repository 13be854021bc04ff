package catalog

import (
	"math"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// function is a function that configs call by name.
type function struct {
	name string
	config.Func
}

// layerFunctions are Thinc's layers under its names and with its arguments, and layers for
// sequences, which Thinc has none of.
var layerFunctions = []function{
	{"Linear.v1", config.Func{Doc: "x·Wᵀ + b", Params: weights(), Make: makeLinear}},
	{"Relu.v1", config.Func{Doc: "max(0, x·Wᵀ + b)", Params: activation("glorot_uniform_init.v1"), Make: makeRelu}},
	{"Gelu.v1", config.Func{Doc: "z·Φ(z) with z = x·Wᵀ + b (Hendrycks and Gimpel, 2016)", Params: activation("he_normal_init.v1"), Make: makeGelu}},
	{"Maxout.v1", config.Func{Doc: "the largest of several x·Wᵀ + b (Goodfellow et al., 2013)", Params: maxoutParams(), Make: makeMaxout}},
	{"Softmax.v1", config.Func{Doc: "softmax(x·Wᵀ + b), the last layer of a classifier; alone it is softmax regression", Params: affineParams("zero_init.v1"), Make: makeSoftmax}},
	{"Dropout.v1", config.Func{
		Doc:    "sets random elements to 0 while training",
		Params: []config.Param{{Name: "rate", Type: config.Float, Default: 0., Doc: "fraction of elements set to 0"}},
		Make: func(a config.Args) (any, error) {
			r := &reader{Args: a}
			return &nn.Dropout{Rate: r.fraction("rate")}, r.err
		}}},
	{"LayerNorm.v1", config.Func{
		Doc: "normalises each row, then scales and shifts it (Ba et al., 2016)",
		Params: []config.Param{widthParam("nI", "elements of a row to insist on; null for any"),
			{Name: "eps", Type: config.Float, Default: 1e-8, Doc: "added to the variance; PyTorch's default is 1e-5"}},
		Make: func(a config.Args) (any, error) {
			r := &reader{Args: a}
			return &nn.LayerNorm{In: r.count("nI"), Eps: r.positive("eps")}, r.err
		}}},
	{"Embed.v1", config.Func{
		Doc: "replaces each id by a learned vector; the first layer",
		Params: []config.Param{outputsParam(), widthParam("nV", "number of ids; null for as many as the data have"),
			{Name: "column", Type: config.Int, Doc: "number of a column of categories, from 0; null if rows are ids alone"},
			initializerParam("initializer", "initial vectors; null for uniform_init.v1"), dropoutParam()},
		Make: makeEmbed}},
	{"HashEmbed.v1", config.Func{
		Doc: "replaces each id of a token by the sum of four learned vectors that its hash chooses; the first layer",
		Params: []config.Param{outputsParam(), wholeNumber("nV", "rows of the table"),
			{Name: "seed", Type: config.Int, Default: 0, Doc: "seed of the hash"},
			{Name: "column", Type: config.Int, Default: 0, Doc: "number of the id of a token, from 0"},
			initializerParam("initializer", "initial vectors; null for uniform_init.v1"), dropoutParam()},
		Make: makeHashEmbed}},
	{"expand_window.v1", config.Func{
		Doc:    "each token with its neighbours, one after the other",
		Params: []config.Param{{Name: "window_size", Type: config.Int, Default: 1, Doc: "tokens on each side"}},
		Make: func(a config.Args) (any, error) {
			r := &reader{Args: a}
			return &nn.ExpandWindow{Size: r.count("window_size")}, r.err
		}}},
	{"Columns.v1", config.Func{
		Doc:    "picks columns of rows of a table; the first layer",
		Params: []config.Param{{Name: "columns", Type: config.List, Form: "list of whole numbers", Required: true, Doc: "numbers of the columns, from 0, without the one to predict"}},
		Make:   makeColumns}},
	{"Positions.v1", config.Func{
		Doc:    "adds a learned vector to each position of a sequence",
		Params: []config.Param{initializerParam("initializer", "initial vectors; null for uniform_init.v1")},
		Make: func(a config.Args) (any, error) {
			r := &reader{Args: a}
			return &nn.Positions{InitE: r.initializer("initializer")}, r.err
		}}},
	{"SelfAttention.v1", config.Func{
		Doc: "multi-head attention of the positions of a sequence to each other (Vaswani et al., 2017)",
		Params: []config.Param{{Name: "heads", Type: config.Int, Default: 1, Doc: "number of heads, which divides the width"},
			{Name: "causal", Type: config.Bool, Default: false, Doc: "hide from each position those after it"},
			initializerParam("init_W", "initial weights; null for glorot_uniform_init.v1"), biasParam()},
		Make: func(a config.Args) (any, error) {
			r := &reader{Args: a}
			return &nn.SelfAttention{Heads: r.count("heads"), Causal: a.Bool("causal"), InitW: r.initializer("init_W"), InitB: r.initializer("init_b")}, r.err
		}}},
}

func makeLinear(a config.Args) (any, error) {
	r := &reader{Args: a}
	return &nn.Linear{Out: r.count("nO"), In: r.count("nI"), InitW: r.initializer("init_W"), InitB: r.initializer("init_b")}, r.err
}

func makeSoftmax(a config.Args) (any, error) {
	r := &reader{Args: a}
	return &nn.Softmax{Out: r.count("nO"), In: r.count("nI"), InitW: r.initializer("init_W"), InitB: r.initializer("init_b")}, r.err
}

func makeRelu(a config.Args) (any, error) {
	r := &reader{Args: a}
	return &nn.Relu{
		Out: r.count("nO"), In: r.count("nI"), InitW: r.initializer("init_W"), InitB: r.initializer("init_b"),
		Dropout: r.fraction("dropout"), Normalize: a.Bool("normalize"),
	}, r.err
}

func makeGelu(a config.Args) (any, error) {
	r := &reader{Args: a}
	return &nn.Gelu{
		Out: r.count("nO"), In: r.count("nI"), InitW: r.initializer("init_W"), InitB: r.initializer("init_b"),
		Dropout: r.fraction("dropout"), Normalize: a.Bool("normalize"),
	}, r.err
}

func makeMaxout(a config.Args) (any, error) {
	r := &reader{Args: a}
	return &nn.Maxout{
		Out: r.count("nO"), In: r.count("nI"), Pieces: r.count("nP"), InitW: r.initializer("init_W"), InitB: r.initializer("init_b"),
		Dropout: r.fraction("dropout"), Normalize: a.Bool("normalize"),
	}, r.err
}

func makeEmbed(a config.Args) (any, error) {
	r := &reader{Args: a}
	l := &nn.Embed{Out: r.count("nO"), Rows: r.count("nV"), InitE: r.initializer("initializer"), Dropout: r.fraction("dropout")}
	if a.Value("column") != nil {
		number := a.Int("column")
		l.Column = &number
	}
	return l, r.err
}

func makeHashEmbed(a config.Args) (any, error) {
	r := &reader{Args: a}
	seed := a.Int("seed")
	if seed < 0 || int64(seed) > math.MaxUint32 {
		r.fail("seed", "must be from 0 to %d, not %d", uint32(math.MaxUint32), seed)
	}
	return &nn.HashEmbed{
		Out: r.count("nO"), Rows: r.count("nV"), Seed: uint32(seed), Column: a.Int("column"),
		InitE: r.initializer("initializer"), Dropout: r.fraction("dropout"),
	}, r.err
}

func makeColumns(a config.Args) (any, error) {
	l := new(nn.Columns)
	for _, v := range a.List("columns") {
		number, ok := v.(int64)
		if !ok {
			return nil, a.Errorf("columns", "must be a list of whole numbers, not with %s", config.Describe(v))
		}
		l.Columns = append(l.Columns, int(number))
	}
	return l, nil
}

func outputsParam() config.Param {
	return widthParam("nO", "number of outputs; null for those that the data need, in the last layer")
}

func widthParam(name, doc string) config.Param {
	return config.Param{Name: name, Type: config.Int, Doc: doc}
}

func dropoutParam() config.Param {
	return config.Param{Name: "dropout", Type: config.Float, Doc: "fraction of outputs set to 0 while training; null for none"}
}

func biasParam() config.Param {
	return initializerParam("init_b", "initial biases; null for zero_init.v1")
}

// weights are the arguments of Linear.v1.
func weights() []config.Param { return affineParams("glorot_uniform_init.v1") }

// affineParams are the arguments of a layer with W and b.
func affineParams(initW string) []config.Param {
	return []config.Param{outputsParam(), widthParam("nI", "number of inputs to insist on; null for any"),
		initializerParam("init_W", "initial weights; null for "+initW), biasParam()}
}

// activation are the arguments of a layer with W, b and an activation function.
func activation(initW string) []config.Param {
	return append(affineParams(initW), dropoutParam(),
		config.Param{Name: "normalize", Type: config.Bool, Default: false, Doc: "put a LayerNorm before the dropout"})
}

// maxoutParams are the arguments of Maxout.v1, in Thinc's order.
func maxoutParams() []config.Param {
	all := activation("glorot_uniform_init.v1")
	pieces := config.Param{Name: "nP", Type: config.Int, Default: 3, Doc: "pieces of each output"}
	return append(append(all[:2:2], pieces), all[2:]...)
}

// A reader reads the arguments of a layer and keeps the first mistake in them.
type reader struct {
	config.Args
	err error
}

func (r *reader) fail(name, format string, args ...any) {
	if r.err == nil {
		r.err = r.Errorf(name, format, args...)
	}
}

// count reads a number of things, of which there is at least one; 0 for null. The limit
// lets nn multiply two of them.
func (r *reader) count(name string) int {
	n := r.Int(name)
	if r.Value(name) != nil && (n < 1 || n > math.MaxInt32) {
		r.fail(name, "must be from 1 to %d, not %d", math.MaxInt32, n)
	}
	return n
}

// fraction reads a dropout rate; 0 for null.
func (r *reader) fraction(name string) float32 {
	f := r.Float(name)
	if !(f >= 0 && float32(f) < 1) {
		r.fail(name, "must be at least 0 and less than 1, not %v", f)
	}
	return float32(f)
}

// positive reads a number that float32 holds.
func (r *reader) positive(name string) float32 {
	f := r.Float(name)
	if !(float32(f) > 0) || math.IsInf(float64(float32(f)), 0) {
		r.fail(name, "must be greater than 0 and a float32, not %v", f)
	}
	return float32(f)
}

// initializer reads an initializer; nil for null, which stands for the layer's own.
func (r *reader) initializer(name string) nn.Initializer {
	init, _ := r.Value(name).(nn.Initializer)
	return init
}

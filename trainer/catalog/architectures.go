package catalog

import (
	"math"

	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/text"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// architectures are spaCy's, under its names and with its arguments.
var architectures = []function{
	{"spacy.Tok2Vec.v2", config.Func{
		Doc: "vectors of tokens that depend on their context",
		Params: []config.Param{architecture[models.MultiHashEmbed]("embed", "spacy.MultiHashEmbed.v2"),
			architecture[models.MaxoutWindowEncoder]("encode", "spacy.MaxoutWindowEncoder.v2")},
		Make: makeTok2Vec}},
	{"spacy.MultiHashEmbed.v2", config.Func{
		Doc: "hash embeddings of several attributes of a token, mixed by Maxout",
		Params: []config.Param{wholeNumber("width", "width of vectors"),
			{Name: "attrs", Type: config.List, Form: "list of names", Required: true, Doc: "attributes: NORM, PREFIX, SUFFIX, SHAPE, LOWER or ORTH"},
			{Name: "rows", Type: config.List, Form: "list of whole numbers", Required: true, Doc: "rows of the table of each attribute"},
			{Name: "include_static_vectors", Type: config.Bool, Required: true, Doc: "not supported, so it must be false"}},
		Make: makeMultiHashEmbed}},
	{"spacy.MaxoutWindowEncoder.v2", config.Func{
		Doc: "convolutions over tokens with Maxout, LayerNorm and residuals",
		Params: []config.Param{wholeNumber("width", "width of vectors"), wholeNumber("window_size", "tokens on each side that a convolution sees"),
			wholeNumber("maxout_pieces", "pieces of Maxout"), wholeNumber("depth", "number of convolutions")},
		Make: func(a config.Args) (any, error) {
			r := &reader{Args: a}
			return models.MaxoutWindowEncoder{Width: r.count("width"), Depth: r.count("depth"), Window: r.count("window_size"), Pieces: r.count("maxout_pieces")}, r.err
		}}},
}

// architecture is an argument that another architecture makes.
func architecture[T any](name, form string) config.Param {
	return config.Param{Name: name, Form: form, Is: func(v any) bool { _, ok := v.(T); return ok }, Required: true, Doc: "block with @architectures"}
}

func makeTok2Vec(a config.Args) (any, error) {
	t := models.Tok2Vec{Embed: a.Value("embed").(models.MultiHashEmbed), Encode: a.Value("encode").(models.MaxoutWindowEncoder)}
	if t.Embed.Width != t.Encode.Width {
		return nil, a.Errorf("encode", "must have width %d, as embed, not %d", t.Embed.Width, t.Encode.Width)
	}
	return t, nil
}

func makeMultiHashEmbed(a config.Args) (any, error) {
	r := &reader{Args: a}
	e := models.MultiHashEmbed{Width: r.count("width")}
	for _, v := range a.List("attrs") {
		name, _ := v.(string)
		attr, err := text.ParseAttr(name)
		if err != nil {
			return nil, a.Errorf("attrs", "must list names of attributes such as \"NORM\", not %s", config.Describe(v))
		}
		e.Attrs = append(e.Attrs, attr.String())
	}
	for _, v := range a.List("rows") {
		n, ok := v.(int64)
		if !ok || n < 1 || n > math.MaxInt32 {
			return nil, a.Errorf("rows", "must list whole numbers, at least 1, not %s", config.Describe(v))
		}
		e.Rows = append(e.Rows, int(n))
	}
	switch {
	case len(e.Attrs) == 0:
		return nil, a.Errorf("attrs", "the list is empty; name at least one attribute")
	case len(e.Rows) != len(e.Attrs):
		return nil, a.Errorf("rows", "must have a number for each of the %d attributes, not %d", len(e.Attrs), len(e.Rows))
	case a.Bool("include_static_vectors"):
		return nil, a.Errorf("include_static_vectors", "must be false; there are no static vectors")
	}
	return e, r.err
}

package catalog

import (
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// combinators are Thinc's functions from layers to layers. Thinc's add.v1 needs two layers;
// here they may all be positional.
var combinators = []function{
	{"chain.v1", config.Func{
		Doc: "layers applied in order", Params: []config.Param{layersParam("layers in order", true)},
		Make: func(a config.Args) (any, error) { return nn.Chain(layersOf(a)...), nil }}},
	{"residual.v1", config.Func{
		Doc: "x + layer(x) (He et al., 2015)", Params: []config.Param{layerParam("layer", "keeps the shape of its rows")},
		Make: func(a config.Args) (any, error) { return nn.Residual(a.Value("layer").(nn.Layer)), nil }}},
	{"concatenate.v1", config.Func{
		Doc:    "results of layers with the same input, one after the other along the first dimension",
		Params: []config.Param{layersParam("layers in order", true)},
		Make:   func(a config.Args) (any, error) { return nn.Concatenate(layersOf(a)...), nil }}},
	{"add.v1", config.Func{
		Doc: "sum of the results of layers with the same input",
		Params: []config.Param{optionalLayer("layer1", "first layer, unless it is positional"), optionalLayer("layer2", "second layer, unless it is positional"),
			layersParam("more layers", false)},
		Make: makeAdd}},
	{"clone.v1", config.Func{
		Doc: "a chain of copies of a layer, each with weights of its own",
		Params: []config.Param{{Name: "orig", Form: layerForm, Is: isLayer, Required: true, Lazy: true, Doc: "the layer to copy"},
			wholeNumber("n", "number of copies")},
		Make: makeClone}},
	{"with_array.v1", config.Func{
		Doc: "applies a layer to each position of a sequence, or with pad to the tokens of documents",
		Params: []config.Param{layerParam("layer", "takes and returns vectors"),
			{Name: "pad", Type: config.Int, Default: 0, Doc: "rows of zeros before and after each document; 0 for sequences that are not documents"}},
		Make: func(a config.Args) (any, error) {
			r := &reader{Args: a}
			l, pad := a.Value("layer").(nn.Layer), r.padding("pad")
			if pad > 0 {
				return nn.Padded(l, pad), r.err
			}
			return nn.EachPosition(l), r.err
		}}},
}

func makeAdd(a config.Args) (any, error) {
	var layers []nn.Layer
	for _, name := range []string{"layer1", "layer2"} {
		if l, ok := a.Value(name).(nn.Layer); ok {
			layers = append(layers, l)
		}
	}
	return nn.Add(append(layers, layersOf(a)...)...), nil
}

// makeClone is nn.Clone with a constructor that can fail.
func makeClone(a config.Args) (any, error) {
	n := a.Int("n")
	if n < 1 {
		return nil, a.Errorf("n", "must be at least 1, not %d", n)
	}
	var layers []nn.Layer
	for range n {
		l, err := a.New("orig")
		if err != nil {
			return nil, err
		}
		layers = append(layers, l.(nn.Layer))
	}
	return nn.Chain(layers...), nil
}

// layerForm describes the values of arguments that are layers.
const layerForm = "layer (@layers)"

func isLayer(v any) bool { _, ok := v.(nn.Layer); return ok }

func layerParam(name, doc string) config.Param {
	return config.Param{Name: name, Form: layerForm, Is: isLayer, Required: true, Doc: doc}
}

func optionalLayer(name, doc string) config.Param {
	return config.Param{Name: name, Form: layerForm, Is: isLayer, Doc: doc}
}

// layersParam are the positional layers.
func layersParam(doc string, required bool) config.Param {
	return config.Param{Name: "layers", Form: layerForm, Is: isLayer, Variadic: true, Required: required, Doc: doc}
}

// layersOf returns the positional layers. The config has checked their type.
func layersOf(a config.Args) []nn.Layer {
	var layers []nn.Layer
	for _, v := range a.List("layers") {
		layers = append(layers, v.(nn.Layer))
	}
	return layers
}

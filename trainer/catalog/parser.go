package catalog

import (
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/models"
	"github.com/ringtrain/ringtrain/nn/ner"
	"github.com/ringtrain/ringtrain/nn/text"
	"github.com/ringtrain/ringtrain/trainer/config"
)

// An entityParser is the network of the task ner.v1: spaCy's TransitionBasedParser.v2. As a
// Layer it is only its tok2vec, without dropout; the task builds the rest.
type entityParser struct {
	nn.Layer
	tok2vec  models.Tok2Vec
	settings ner.Settings
}

// parserArchitecture makes an entityParser.
var parserArchitecture = function{"spacy.TransitionBasedParser.v2", config.Func{
	Doc: "finds entities from left to right by moves of a state; the network of ner.v1",
	Params: []config.Param{
		{Name: "state_type", Type: config.String, Required: true, Doc: "must be \"ner\""},
		{Name: "extra_state_tokens", Type: config.Bool, Required: true, Doc: "score moves from the vectors of six tokens; if false, of three"},
		wholeNumber("hidden_width", "units of the hidden layer"),
		wholeNumber("maxout_pieces", "pieces of each unit; 1 for Relu"),
		{Name: "use_upper", Type: config.Bool, Default: true, Doc: "score moves by a layer on top of the hidden units; if false, these are the scores"},
		{Name: "nO", Type: config.Int, Doc: "number of moves; null, because the labels of the data decide"},
		architecture[models.Tok2Vec]("tok2vec", "spacy.Tok2Vec.v2"),
	},
	Make: makeParser}}

func makeParser(a config.Args) (any, error) {
	r := &reader{Args: a}
	if s := a.String("state_type"); s != "ner" {
		r.fail("state_type", "must be \"ner\", not %q; there is no other", s)
	}
	if a.Value("nO") != nil {
		r.fail("nO", "must be null, not %d, because the labels of the data decide", a.Int("nO"))
	}
	p := &entityParser{
		tok2vec:  a.Value("tok2vec").(models.Tok2Vec),
		settings: ner.Settings{Hidden: r.count("hidden_width"), Pieces: r.count("maxout_pieces"), Direct: !a.Bool("use_upper")},
	}
	if p.settings.Pieces > ner.MostPieces {
		r.fail("maxout_pieces", "must be from 1 to %d, not %d", ner.MostPieces, p.settings.Pieces)
	}
	if a.Bool("extra_state_tokens") {
		p.settings.Features = ner.SixTokens
	}
	p.Layer = p.tok2vec.Layer(0)
	return p, r.err
}

// parser returns what a Recognizer of m is made from.
func (p *entityParser) parser(m entityModel) (ner.Parser, error) {
	out := ner.Parser{Settings: p.settings, Encoder: p.tok2vec.Layer(m.dropout), Moves: m.moves}
	out.Cut, out.Drop, out.LastForMissing = m.cut, m.drop, m.last
	for _, name := range p.tok2vec.Embed.Attrs {
		attr, err := text.ParseAttr(name)
		if err != nil {
			return ner.Parser{}, err
		}
		out.Attrs = append(out.Attrs, attr)
	}
	return out, nil
}

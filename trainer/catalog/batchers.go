package catalog

import (
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// batchers are spaCy's, under its names and with its arguments.
var batchers = []function{
	{"spacy.batch_by_words.v1", config.Func{
		Doc: "batches of documents with about the same number of words",
		Params: []config.Param{
			{Name: "size", Form: scheduled, Required: true, Doc: "words of one worker in one step, or in one micro-batch of --accumulate"},
			{Name: "tolerance", Type: config.Float, Required: true, Doc: "fraction of size by which a batch may exceed it"},
			{Name: "discard_oversize", Type: config.Bool, Required: true, Doc: "leave out documents longer than that; if false, each is a batch of its own"},
			{Name: "get_length", Form: "null", Doc: "not supported, so it must be null"},
		},
		Make: makeWordBatches}},
}

func makeWordBatches(a config.Args) (any, error) {
	size, err := schedule(a, "size")
	if err != nil {
		return nil, err
	}
	switch first, tolerance := size(0), a.Float("tolerance"); {
	case !(first >= 1):
		return nil, a.Errorf("size", "must be at least 1, not %v", first)
	case !(tolerance >= 0):
		return nil, a.Errorf("tolerance", "must be at least 0, not %v", tolerance)
	case a.Value("get_length") != nil:
		return nil, a.Errorf("get_length", "must be null; a document is as long as its words")
	default:
		return &data.WordBatches{Size: size, Tolerance: tolerance, DiscardOversize: a.Bool("discard_oversize")}, nil
	}
}

"""Trains spaCy's tok2vec and ner without dropout, and prints the losses of each step as JSON.

    PYTHONPATH=scripts python nn/ner/testdata/losses.py [CORPUS SENTENCES STEPS] > losses.json

Without arguments, the network is small, trains on a few sentences, and prints losses.json of
this directory. CORPUS is a file train.spacy: the network is then that of spaCy's default.cfg,
and TestTrainingOfSpaCy checks the output if SPACY_LOSSES names it.
"""

import json
import sys

import numpy
import spacy
from spacy.ml import parser_model
from spacy.tokens import Doc, DocBin
from spacy.training import Example
from spacy.training.iob_utils import iob_to_biluo
from spacy_weights import labels, parameters
from thinc.api import Adam, Model, NumpyOps, fix_random_seed

SENTENCES = """
Casey|B-PER Miller|I-PER went|O to|O New|B-LOC York|I-LOC .|O
The|O Bank|B-ORG of|I-ORG London|I-ORG hired|O Ann|B-PER .|O
"|O London|B-LOC ,|O "|O said|O Ann|B-PER Old|I-PER York|I-PER in|O 1997|O
Miller|B-ORG Corp|I-ORG left|O London|B-LOC York|B-LOC
Nothing|O happened|O in|O March|O .|O
Old|B-ORG New|I-ORG York|I-ORG Bank|I-ORG Corp|I-ORG met|O Casey|B-PER of|O Miller|B-LOC
York|B-LOC
Who|O is|O Casey|B-PER ?|O
"""
SMALL = {"width": 8, "rows": [30, 20, 20, 20], "depth": 2, "hidden": 8, "batch": 3, "steps": 120, "learn_rate": 0.001}
DEFAULT = {"width": 96, "rows": [2000, 1000, 1000, 1000], "depth": 4, "hidden": 64, "batch": 8, "learn_rate": 0.001}
PIECES = {"tok2vec": 3, "ner": 2}
ATTRS = ["NORM", "PREFIX", "SUFFIX", "SHAPE"]


def pipeline(s):
    """Returns a pipeline of two components, as in spaCy's default.cfg."""
    nlp = spacy.blank("en")
    tok2vec = {
        "@architectures": "spacy.Tok2Vec.v2",
        "embed": {
            "@architectures": "spacy.MultiHashEmbed.v2", "width": s["width"], "rows": s["rows"],
            "attrs": ATTRS, "include_static_vectors": False,
        },
        "encode": {
            "@architectures": "spacy.MaxoutWindowEncoder.v2", "width": s["width"], "depth": s["depth"],
            "window_size": 1, "maxout_pieces": PIECES["tok2vec"],
        },
    }
    ner = {
        "@architectures": "spacy.TransitionBasedParser.v2", "state_type": "ner", "extra_state_tokens": True,
        "hidden_width": s["hidden"], "maxout_pieces": PIECES["ner"], "use_upper": True,
        "tok2vec": {"@architectures": "spacy.Tok2VecListener.v1", "width": s["width"]},
    }
    nlp.add_pipe("tok2vec", config={"model": tok2vec})
    nlp.add_pipe("ner", config={"model": ner})
    return nlp


def examples(nlp, corpus, sentences):
    """Returns the sentences to learn from, and their words and tags."""
    if corpus:
        docs = list(DocBin().from_disk(corpus).get_docs(nlp.vocab))[:sentences]
        tagged = [([t.text for t in d], [f"{t.ent_iob_}-{t.ent_type_}" if t.ent_type_ else "O" for t in d]) for d in docs]
    else:
        lines = [line.split() for line in SENTENCES.strip().split("\n")]
        tagged = [tuple(zip(*(word.split("|") for word in line))) for line in lines]
    tagged = [(list(words), iob_to_biluo(list(tags))) for words, tags in tagged]
    return tagged, [
        Example.from_dict(Doc(nlp.vocab, words=words), {"words": words, "entities": tags})
        for words, tags in tagged
    ]


def log_loss(scores, gradient):
    """Returns the loss of states. Moves of the smallest cost have a gradient of at most 0."""
    scores = scores.astype("f8")
    scores = scores - scores.max(axis=1, keepdims=True)
    good = numpy.where(gradient <= 0, numpy.exp(scores), 0).sum(axis=1)
    return float((numpy.log(numpy.exp(scores).sum(axis=1)) - numpy.log(good)).sum())


def main(corpus="", sentences="0", steps=""):
    """Trains, and prints everything that is needed to do the same."""
    NumpyOps.get_dropout_mask = lambda self, shape, drop: numpy.ones(shape, dtype="f")
    step_loss = 0.0

    def begin_update(self, states):
        scores, back = Model.begin_update(self, states)

        def backprop(gradient):
            nonlocal step_loss
            step_loss += log_loss(scores, gradient)
            return back(gradient)

        return scores, backprop

    parser_model.ParserStepModel.begin_update = begin_update
    s = dict(DEFAULT if corpus else SMALL)
    s["steps"] = int(steps or s["steps"])
    fix_random_seed(1)
    nlp = pipeline(s)
    tagged, batches = examples(nlp, corpus, int(sentences))
    nlp.initialize(lambda: batches)
    params = []
    for name, layer, param in parameters(nlp):
        values = [round(float(v), 4) for v in layer.get_param(param).ravel()]
        shape = layer.get_param(param).shape
        layer.set_param(param, numpy.array(values, dtype="f").reshape(shape))
        params.append({"name": name, "shape": shape, "values": values})
    optimizer = Adam(
        s["learn_rate"], beta1=0.9, beta2=0.999, eps=1e-8, L2=0.01, L2_is_weight_decay=True, grad_clip=1.0, use_averages=False,
    )
    out = []
    for step in range(s["steps"]):
        step_loss, losses = 0.0, {}
        batch = [batches[(step * s["batch"] + i) % len(batches)] for i in range(s["batch"])]
        for _, component in nlp.pipeline:
            component.update(batch, drop=0.0, losses=losses)
        for _, component in nlp.pipeline:  # nlp.update updates tok2vec before ner returns its gradient
            component.finish_update(optimizer)
        out.append([float(f"{x:.8g}") for x in (losses["tok2vec"], losses["ner"], step_loss)])
    print(json.dumps({
        **s, "attrs": ATTRS, "pieces": PIECES, "labels": labels(nlp),
        "docs": [{"words": words, "tags": tags} for words, tags in tagged],
        "losses": out, "params": params,
    }, separators=(",", ":")))


if __name__ == "__main__":
    main(*sys.argv[1:])

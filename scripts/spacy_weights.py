"""Writes the weights of a spaCy pipeline to a file for "ringtrain train --init".

    spacy_weights.py MODEL FILE

MODEL is a directory of "spacy train" or nlp.to_disk, or the name of an installed package, with
a component "ner" (spacy.TransitionBasedParser.v2, state_type "ner") whose tok2vec is inside it
or a component of its own (spacy.Tok2Vec.v2 of spacy.MultiHashEmbed.v2, without static vectors,
and spacy.MaxoutWindowEncoder.v2). FILE is in the safetensors format; its metadata have the
labels in the order of the moves.

Both programs store arrays in the same layout, so only names differ:

    tok2vec.layers.0.layers.0.layers.I.E                    table of attribute I
    tok2vec.layers.0.layers.1.{W,b,norm.G,norm.b}           Maxout that mixes the attributes
    tok2vec.layers.1.layers.0.layers.I.layers.0.layers.1.*  the same of convolution I
    ner.linear.{W,b}                                        reduces the vectors of tokens
    ner.lower.{W,b,pad}   (tokens, units, pieces, inputs), (units, pieces), (1, tokens, units, pieces)
    ner.upper.{W,b}       (moves, units), (moves); absent if use_upper is false
"""

import json
import struct
import sys

try:
    import numpy
    import spacy
except ModuleNotFoundError as missing:
    raise SystemExit(f"spacy_weights: the module {missing.name} is missing; pip install spacy installs it") from None

MIX = "tok2vec.layers.0.layers.1"
CONVOLUTION = "tok2vec.layers.1.layers.0.layers.{}.layers.0.layers.1"


def nodes(model, param):
    """Returns the layers within a model that have a parameter of this name, in order."""
    return [node for node in model.walk() if param in node.param_names]


def maxouts(model):
    """Returns the Maxout layers within a model, each with the LayerNorm that follows it."""
    norms = nodes(model, "G")
    layers = [node for node in nodes(model, "W") if node.has_dim("nP")]
    if len(layers) != len(norms):
        raise SystemExit("spacy_weights: each Maxout of tok2vec must have a LayerNorm")
    return list(zip(layers, norms))


def parameters(nlp):
    """Returns (name, layer, name within the layer) of each parameter, as ringtrain orders them."""
    ner = nlp.get_pipe("ner").model
    reduced = ner.get_ref("tok2vec")  # tok2vec or its listener, list2array, Linear
    tok2vec = reduced.layers[0]
    if not tok2vec.has_ref("embed"):
        tok2vec = nlp.get_pipe("tok2vec").model
    embed, encode = tok2vec.get_ref("embed"), tok2vec.get_ref("encode")
    out = [
        (f"tok2vec.layers.0.layers.0.layers.{i}.E", node, "E")
        for i, node in enumerate(nodes(embed, "E"))
    ]
    convolutions = [(CONVOLUTION.format(i), pair) for i, pair in enumerate(maxouts(encode))]
    for prefix, (maxout, norm) in [(MIX, maxouts(embed)[0])] + convolutions:
        out += [(f"{prefix}.{name}", maxout, name) for name in ("W", "b")]
        out += [(f"{prefix}.norm.{name}", norm, name) for name in ("G", "b")]
    out += [(f"ner.linear.{name}", reduced.layers[-1], name) for name in ("W", "b")]
    out += [(f"ner.lower.{name}", ner.get_ref("lower"), name) for name in ("W", "b", "pad")]
    if ner.attrs["has_upper"]:
        out += [(f"ner.upper.{name}", ner.get_ref("upper"), name) for name in ("W", "b")]
    return out


def labels(nlp):
    """Returns the labels in the order of the moves."""
    moves = nlp.get_pipe("ner").moves
    names = [moves.get_class_name(i) for i in range(moves.n_moves)]
    return [name[2:] for name in names if name.startswith("B-")]


def write(path, arrays, metadata):
    """Writes named float32 arrays as safetensors."""
    header, at = {"__metadata__": metadata}, 0
    for name, array in arrays:
        header[name] = {"dtype": "F32", "shape": array.shape, "data_offsets": [at, at + array.nbytes]}
        at += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, array in arrays:
            file.write(array.tobytes())


def export(nlp, path):
    """Writes the weights of a pipeline."""
    arrays = [
        (name, numpy.ascontiguousarray(layer.get_param(param), dtype="<f4"))
        for name, layer, param in parameters(nlp)
    ]
    about = f"spaCy {spacy.__version__}, {nlp.meta['lang']}_{nlp.meta['name']}"
    write(path, arrays, {"labels": json.dumps(labels(nlp), separators=(",", ":")), "source": about})


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: spacy_weights.py MODEL FILE")
    export(spacy.load(sys.argv[1]), sys.argv[2])

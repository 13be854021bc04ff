"""Trains the recognizer of examples/ner.cfg with spaCy.

    spacy_ner.py CONFIG DIR STEPS SEED

CONFIG is ringtrain's: its model, batches, dropout and optimizer have spaCy's names, so
they move to the sections where spaCy expects them, and spaCy's own defaults fill the rest.
DIR has train.spacy and dev.spacy of "spacy convert". Prints events as ringtrain does: one
JSON object per step, with the words of its batch and the seconds since the first step
began, and one for the result.
"""

import json
import os
import sys
import time

import spacy
from spacy import util
from spacy.schemas import ConfigSchemaTraining
from spacy.training.initialize import init_nlp
from spacy.training.loop import create_train_batches, train_while_improving
from thinc.api import Config, fix_random_seed, require_cpu


def settings(file, directory, steps, seed):
    """Returns the config of spaCy that corresponds to one of ringtrain."""
    ours = Config().from_disk(file)
    ner = {"factory": "ner", "model": ours["model"]}
    training = {
        "seed": seed, "gpu_allocator": None, "dropout": ours["task"]["dropout"], "batcher": ours["task"]["batcher"],
        "optimizer": ours["optimizer"], "max_steps": steps, "patience": 0,
    }
    corpora = {
        part: {"@readers": "spacy.Corpus.v1", "path": os.path.join(directory, part + ".spacy")}
        for part in ("train", "dev")
    }
    return Config({
        "nlp": {"lang": "en", "pipeline": ["ner"]}, "components": {"ner": ner},
        "corpora": corpora, "training": training,
    })


def main(file, directory, steps, seed):
    """Trains, prints a line per step, then evaluates."""
    steps, seed = int(steps), int(seed)
    require_cpu()
    nlp = init_nlp(settings(file, directory, steps, seed))
    config = nlp.config.interpolate()
    resolved = util.registry.resolve(config["training"], schema=ConfigSchemaTraining)
    corpora = util.registry.resolve(config["corpora"])
    fix_random_seed(seed)
    training = train_while_improving(
        nlp, resolved["optimizer"],
        create_train_batches(nlp, corpora["train"], resolved["batcher"], 0),
        lambda: (0.0, {}),  # no evaluation on the way
        dropout=resolved["dropout"], accumulate_gradient=1, patience=0, max_steps=0,
        eval_frequency=steps, exclude=[], annotating_components=[], before_update=None,
    )
    events, begin = [], time.perf_counter()
    for step, (batch, _, _) in enumerate(training, 1):
        events.append({
            "event": "step", "step": step, "samples": sum(len(example) for example in batch),
            "seconds": time.perf_counter() - begin,
        })
        if step == steps:
            break
    scores = nlp.evaluate(corpora["dev"](nlp))
    for event in events:
        print(json.dumps(event))
    print(json.dumps({
        "event": "result", "steps": steps, "ents_f": scores["ents_f"], "about": "spaCy " + spacy.__version__,
    }))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Writes golden.json: batches of spaCy's minibatch_by_words, for some documents.

pip install spacy==3.8.18; python make.py
"""
import itertools
import json
import random
from spacy.training.batchers import minibatch_by_words

random.seed(0)
cases = []
for start, compound, tolerance, discard in [(40, 1.05, 0.2, False), (40, 1.05, 0.2, True), (15, 1, 0, False), (90, 0.9, 0.5, True)]:
    used = 0

    def sizes():
        global used
        for n in itertools.count():
            used = n + 1
            yield start * compound ** n

    words = [random.choice([1, 5, 9, 20, 30, 60]) + random.randrange(4) for _ in range(60)]
    words[7] = 0
    batches = list(minibatch_by_words(list(enumerate(words)), sizes(), tolerance, discard, get_length=lambda d: d[1]))
    cases.append({"start": start, "compound": compound, "tolerance": tolerance, "discard": discard, "words": words,
                  "batches": [[d[0] for d in b] for b in batches], "sizes": used})
json.dump(cases, open("golden.json", "w"))

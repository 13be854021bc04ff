"""Writes golden.spacy with spaCy 3, and what spaCy reads in it to golden.json.

pip install spacy==3.8.18; python make.py
"""
import json
import spacy
from spacy.tokens import Doc, DocBin, Span

nlp = spacy.blank("xx")
vocab = nlp.vocab


def doc(words, spaces=None, ents=None, **more):
    d = Doc(vocab, words=words, spaces=spaces, **more)
    if ents is not None:
        d.set_ents([Span(d, s, e, label=l) for s, e, l in ents])
    return d


docs = [
    doc(["Casey", "went", "to", "New", "York", "."], [True] * 4 + [False] * 2, [(0, 1, "PERSON"), (3, 5, "GPE")]),
    doc(["PERSON", "cc", "X", "née", "𝔘", "東京"], [True] * 6, [(0, 1, "X"), (1, 2, "X"), (2, 6, "Éa b")]),
    doc(["unknown", "spaces"], None, []),
    doc(["raw", "text"], [True, False]),
    doc([]),
    doc(["some", "missing", "London"], [True, True, False]),
    doc(["blocked", "word"], [True, False], [(0, 1, "LOC")]),
]
d = docs[5]
d.set_ents([Span(d, 2, 3, label="LOC")], missing=[Span(d, 1, 2)])
d = docs[6]
d.set_ents([], blocked=[Span(d, 0, 1)])
DocBin(docs=docs, store_user_data=False).to_disk("golden.spacy")

out = []
for d in DocBin().from_disk("golden.spacy").get_docs(spacy.blank("xx").vocab):
    tags = []
    for t in d:
        last = t.i + 1 == len(d) or d[t.i + 1].ent_iob_ != "I"
        if t.ent_iob_ == "":
            tags.append("-")
        elif t.ent_iob_ == "O" or not t.ent_type_:
            tags.append("O")
        elif t.ent_iob_ == "B":
            tags.append(("U-" if last else "B-") + t.ent_type_)
        else:
            tags.append(("L-" if last else "I-") + t.ent_type_)
    if len(d):
        out.append({
            "words": [t.text for t in d],
            "spaces": None if d.has_unknown_spaces else [bool(t.whitespace_) for t in d],
            "tags": tags,
            "text": d.text,
        })
json.dump(out, open("golden.json", "w"), ensure_ascii=False, indent=1)

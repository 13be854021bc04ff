// Package text holds documents with named entities, and reads and writes corpora of them.
//
// A [Doc] is words, the spaces between them, and entities, which are labelled [Span]s of
// words. [Doc.Tags] gives the entities as one BILUO [Tag] per word, and [Doc.SetTags]
// accepts the tags of every common scheme. [Tokenize] makes a Doc of raw text.
//
// Corpora come in four formats: CoNLL-2003 columns ([ReadCoNLL]), lines as in WikiNER
// ([ReadIOB]), JSON lines with offsets ([ReadJSONL]), and spaCy's binary DocBin
// ([ReadDocBin]). Readers stream: they hold one document at a time, except that a DocBin
// is decompressed as a whole. A mistake in a corpus is an error that names file, line and
// reason. Where training can continue, it is a warning instead.
package text

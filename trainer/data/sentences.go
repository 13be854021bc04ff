package data

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/nn/text"
	"github.com/ringtrain/ringtrain/trainer/atomicfile"
)

// Streams of draws of synthetic sentences. Those of sentences follow sentenceStream.
const (
	lexiconStream  = 1
	sentenceStream = 2
)

// SentencesOptions configures synthetic sentences with named entities.
type SentencesOptions struct {
	Train, Dev int
	Seed       uint64 // a different seed gives different names and sentences
}

// Sentences generates the sentences to train and to evaluate on. Sentence i of a part is a
// function of the seed, the part and i: it does not depend on the number of sentences.
//
// Sentences have at least 10 words, and seldom more than 40. They contain names of persons,
// places, organisations and other things, of one to five words, some directly after each
// other. Names and rare common nouns are made of the same syllables. Many names are shared
// by a person, a place and an organisation: then the words around them tell the label, or
// nothing does. 30 % of the names in the second part, and of its rare nouns, are in no
// sentence of the first.
func Sentences(o SentencesOptions) (train, dev iter.Seq[*text.Doc]) {
	n := newNames(o.Seed)
	part := func(count int, second bool) iter.Seq[*text.Doc] {
		return func(yield func(*text.Doc) bool) {
			for i := range count {
				if !yield(n.sentence(o.Seed, i, second)) {
					return
				}
			}
		}
	}
	return part(o.Train, false), part(o.Dev, true)
}

// WriteSentences writes the sentences to files called train and dev in a directory, which
// it creates if needed, with the first suffix of the format. Each file is replaced
// atomically.
func WriteSentences(dir string, f text.Format, o SentencesOptions) error {
	if f.Write == nil {
		return fmt.Errorf("data: sentences cannot be written in the format %s", f.Name)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	train, dev := Sentences(o)
	for name, docs := range map[string]iter.Seq[*text.Doc]{"train": train, "dev": dev} {
		if err := writeDocs(filepath.Join(dir, name+f.Suffixes[0]), f, docs); err != nil {
			return err
		}
	}
	return nil
}

// A sentencePart is some words, or an entity if it has a label.
type sentencePart struct{ words, label string }

// clauses are templates. Words in capitals are kinds of entities, and those in brackets
// classes of words. NAME is a person, a place or an organisation: there only the name can
// tell its label. Elsewhere the words next to it do. Where a NAME may stand, so may a noun:
// if both are new, only the capital letter tells them apart.
var clauses = [...]string{
	"PER said that the <adjective> <noun> was <adjective>",
	"PER told reporters about the <noun>",
	"PER , who was born in LOC , met PER",
	"Mr PER met Mrs PER near LOC",
	"Dr PER wrote a book about <noun>",
	"PER visited LOC in <month>",
	"they visited <noun> in <month>",
	"the <noun> in LOC was <adjective>",
	"the train to LOC left on <day>",
	"the train to <noun> left on <day>",
	"the LOC LOC ferry was <adjective>",
	"people from LOC and from LOC came to the <noun>",
	"<number> people live in LOC",
	"the mayor of LOC , PER , resigned on <day>",
	"ORG hired <number> people in LOC",
	"PER was hired by ORG",
	"shares of ORG fell by <number> percent",
	"shares of <noun> fell by <number> percent",
	"ORG , based in LOC , makes <noun>",
	"the chairman of ORG met PER",
	"ORG announced a <adjective> <noun>",
	"the board of ORG approved <noun> on <day>",
	"a DEMONYM painter bought the <noun>",
	"a <adjective> painter bought the <noun>",
	"the DEMONYM PER bought <number> <noun>",
	"they won the EVENT in <month>",
	"they won the <noun> in <month>",
	"the winner of the EVENT came from LOC",
	"PER lost the EVENT to PER",
	"we know PER , ORG and the EVENT",
	"Today the <noun> costs <number>",
	"NAME was <adjective> in <month>",
	"the <noun> was <adjective> in <month>",
	"the <noun> of NAME was <adjective>",
	"the <noun> of <noun> was <adjective>",
	"we read about NAME and NAME on <day>",
	"we read about <noun> and NAME on <day>",
	"NAME had <number> <noun> in <month>",
	"they compared NAME with NAME and NAME",
	"they compared NAME with <noun>",
	"they compared <noun> with NAME and <noun>",
	"the story of NAME , NAME and NAME is <adjective>",
	"the story of <noun> , NAME and <noun> is <adjective>",
	"everyone knows NAME",
	"everyone knows <noun>",
	"the <adjective> <noun> is about NAME",
	"the <adjective> <noun> is about <noun>",
	"NAME , NAME and <noun> were in the news",
}

// classes are the words of the classes in clauses.
var classes = map[string][]string{
	"month":     {"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"},
	"day":       {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"},
	"adjective": {"new", "old", "small", "large", "cheap", "quiet", "strange", "famous", "green", "early", "local", "public"},
}

// connectors join clauses.
var connectors = [...]string{", and", ", but", "because", "while", ", although", "after"}

// sentence returns a sentence of a part.
func (n *names) sentence(seed uint64, i int, second bool) *text.Doc {
	stream := uint64(sentenceStream + 2*i)
	if second {
		stream++
	}
	s := &scribe{draws: newDraws(seed, stream)}
	var parts []sentencePart
	for words := 0; words < 10 || words < 24 && s.chance(40); {
		if len(parts) > 0 {
			parts = append(parts, sentencePart{words: connectors[s.pick(len(connectors))]})
		}
		from := len(parts)
		parts = n.clause(s, parts, second)
		for _, p := range parts[from:] {
			words += len(strings.Fields(p.words))
		}
	}
	if first := parts[0].words; parts[0].label == "" {
		parts[0].words = strings.ToUpper(first[:1]) + first[1:]
	}
	return annotated(append(parts, sentencePart{words: "."}))
}

// clause appends a clause.
func (n *names) clause(s *scribe, parts []sentencePart, second bool) []sentencePart {
	for w := range strings.FieldsSeq(clauses[s.pick(len(clauses))]) {
		if w == "NAME" {
			w = [...]string{"PER", "LOC", "ORG"}[s.pick(3)]
		}
		p := sentencePart{words: w}
		switch class := strings.Trim(w, "<>"); {
		case n.entities[w] != nil:
			p = sentencePart{n.mention(s, w, second), entityLabels[w]}
		case class == w:
		case class == "number":
			p.words = strconv.Itoa(2 + s.pick(998))
		case class == "noun":
			p.words = n.noun(s, second)
		default:
			p.words = classes[class][s.pick(len(classes[class]))]
		}
		parts = append(parts, p)
	}
	return parts
}

// writeDocs replaces a file with documents.
func writeDocs(path string, f text.Format, docs iter.Seq[*text.Doc]) error {
	file, err := atomicfile.Create(path, atomicfile.Options{})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = file.Discard() }() // does nothing after Replace
	if err = encodeDocs(file, f, docs); err == nil {
		err = file.Replace()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// encodeDocs writes documents in a format.
func encodeDocs(w io.Writer, f text.Format, docs iter.Seq[*text.Doc]) error {
	out := bufio.NewWriterSize(w, 1<<16)
	for d := range docs {
		if err := f.Write(out, d); err != nil {
			return err
		}
	}
	return out.Flush()
}

package text

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// WriteCoNLL writes a document as one sentence in the format of CoNLL-2003: a line with the
// word and its tag, in the scheme IOB2, for each word, and an empty line. It returns an
// error for a word or label that has white space. Spaces are not written.
func WriteCoNLL(w io.Writer, d *Doc) error {
	var b strings.Builder
	for i, tag := range IOB2.Tags(d) {
		if d.Words[i] == docStart {
			return fmt.Errorf("the word %s cannot be in a CoNLL file, where it begins a document; write JSONL", docStart)
		}
		if err := column(d.Words[i], tag); err != nil {
			return err
		}
		b.WriteString(d.Words[i] + " " + tag + "\n")
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteIOB writes a document as one line in the format of WikiNER: word|-|TAG, in the
// scheme IOB1, where the dash is in place of the part of speech. It returns an error for a
// word or label that has white space, and for a label with a bar. Spaces are not written.
func WriteIOB(w io.Writer, d *Doc) error {
	tags := IOB1.Tags(d)
	words := make([]string, len(tags))
	for i, tag := range tags {
		if err := column(d.Words[i], tag); err != nil {
			return err
		}
		if strings.Contains(tag, "|") {
			return fmt.Errorf("the tag %.40q has a bar, which separates columns; write JSONL", tag)
		}
		words[i] = d.Words[i] + "|-|" + tag
	}
	_, err := io.WriteString(w, strings.Join(words, " ")+"\n")
	return err
}

// column returns an error for a word or tag that cannot be a column.
func column(word, tag string) error {
	if word == "" || strings.ContainsFunc(word+tag, unicode.IsSpace) {
		return fmt.Errorf("the word %.40q with the tag %.40q is empty or has white space, which separates columns; write JSONL", word, tag)
	}
	return nil
}

// WriteJSONL writes a document as one line of JSON: its text and, if it is annotated, its
// entities as [start, end, label], in code points. It adds the tokens of Prodigy if Tokenize
// would divide the text into other words. Missing is not written.
func WriteJSONL(w io.Writer, d *Doc) error {
	offsets := d.Offsets()
	line := struct {
		Text     string    `json:"text"`
		Entities *[][3]any `json:"entities,omitempty"`
		Tokens   []Token   `json:"tokens,omitempty"`
	}{Text: d.Text(), Tokens: d.Tokens()}
	if d.Annotated {
		entities := [][3]any{}
		for _, e := range d.Entities {
			entities = append(entities, [3]any{offsets[e.Start].Start, offsets[e.End-1].End, e.Label})
		}
		line.Entities = &entities
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(line)
}

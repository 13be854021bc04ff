package text

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// ReadJSONL reads documents from JSON lines, uncompressed. A line is one of
//
//	{"text": "...", "entities": [[start, end, "LABEL"], ...]}
//	{"text": "...", "spans": [{"start": 0, "end": 5, "label": "LABEL"}, ...]}
//	["...", {"entities": [[start, end, "LABEL"], ...]}]
//
// as spaCy and Prodigy write them. Offsets count code points. A line with neither entities
// nor spans is not annotated. Words are those of Tokenize, unless the line has the tokens
// of Prodigy. Lines that annotators did not accept, with an "answer" other than "accept",
// are left out.
//
// Options.Warn receives lines without words, which are left out, and entities that do not
// begin and end with words or overlap an earlier one: whether their words belong to an
// entity is Missing. Reading ends with the first error.
func ReadJSONL(r io.Reader, o Options) iter.Seq2[*Doc, error] {
	return documents(r, o, func(l *lines, line string) (*Doc, error) { return l.document([]byte(line), o) })
}

// A record is a line of JSON. Entities and Spans are nil if the line has none.
type record struct {
	Text     *string  `json:"text"`
	Entities []extent `json:"entities"`
	Spans    []extent `json:"spans"`
	Tokens   []Token  `json:"tokens"`
	Answer   string   `json:"answer"`
}

// A Token is the Range of a word in the JSON of Prodigy.
type Token struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Tokens returns the words of a document as Prodigy has them, or nil if Tokenize divides its
// text into the same words.
func (d *Doc) Tokens() []Token {
	if slices.Equal(Tokenize(d.Text()).Words, d.Words) {
		return nil
	}
	var tokens []Token
	for _, o := range d.Offsets() {
		tokens = append(tokens, Token(o))
	}
	return tokens
}

// An extent is an entity as code points of a text.
type extent struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Label string `json:"label"`
}

// UnmarshalJSON accepts [start, end, label] and an object with these names.
func (e *extent) UnmarshalJSON(b []byte) error {
	if !bytes.HasPrefix(b, []byte("[")) {
		type plain extent // without this method
		return json.Unmarshal(b, (*plain)(e))
	}
	var parts []json.RawMessage
	err := json.Unmarshal(b, &parts)
	if err == nil && len(parts) != 3 {
		err = fmt.Errorf("an entity must be [start, end, label], not %d values", len(parts))
	}
	if err != nil {
		return err
	}
	return cmp.Or(json.Unmarshal(parts[0], &e.Start), json.Unmarshal(parts[1], &e.End), json.Unmarshal(parts[2], &e.Label))
}

// parseRecord returns the record of a line, in any of its forms.
func parseRecord(line []byte) (r record, err error) {
	if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("[")) {
		err = json.Unmarshal(line, &r)
	} else {
		var pair []json.RawMessage
		if err = json.Unmarshal(line, &pair); err == nil && len(pair) != 2 {
			err = fmt.Errorf("a list must hold a text and its annotation, not %d values", len(pair))
		}
		if err == nil {
			err = cmp.Or(json.Unmarshal(pair[1], &r), json.Unmarshal(pair[0], &r.Text))
		}
	}
	if err == nil && r.Text == nil {
		err = errors.New(`there is no "text"`)
	}
	return r, err
}

// withoutGo replaces an error that names Go's types.
func withoutGo(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	must := "an object"
	switch wrong.Type.Kind() {
	case reflect.Int:
		must = "an integer"
	case reflect.String:
		must = "a string"
	case reflect.Slice:
		must = "a list"
	}
	what := "the line"
	if wrong.Field != "" {
		what = strconv.Quote(wrong.Field)
	}
	return fmt.Errorf("%s must be %s, not %s", what, must, wrong.Value)
}

// document returns the document of a line, or nil if it is to be left out.
func (l *lines) document(line []byte, o Options) (*Doc, error) {
	r, err := parseRecord(line)
	if err != nil {
		return nil, l.errorf("not a document as JSON: %w", withoutGo(err))
	}
	if r.Answer != "" && r.Answer != "accept" {
		return nil, nil
	}
	d := Tokenize(*r.Text)
	if r.Tokens != nil {
		if d, err = divided(*r.Text, r.Tokens); err != nil {
			return nil, l.errorf("%w", err)
		}
	}
	if d.Len() == 0 {
		o.warn(l.errorf("the text is empty; the line is left out"))
		return nil, nil
	}
	for i, w := range d.Words {
		d.Words[i] = l.intern(w)
	}
	if r.Entities == nil {
		r.Entities = r.Spans
	}
	if r.Entities == nil {
		return d, nil
	}
	unaligned, err := d.annotate(r.Entities)
	if err != nil {
		return nil, l.errorf("%w", err)
	}
	for _, e := range unaligned {
		o.warn(l.errorf("the entity [%d, %d, %q] does not begin and end with words, or overlaps another; its words count as missing", e.Start, e.End, e.Label))
	}
	return d, nil
}

// divided returns a document with these words of a text. White space between them that is
// not a single space becomes words.
func divided(text string, words []Token) (*Doc, error) {
	d, chars, at := &Doc{}, []rune(text), 0
	for _, w := range words {
		if w.Start < at || w.End <= w.Start || w.End > len(chars) {
			return nil, fmt.Errorf("the token [%d, %d] must be after the one before it and within the %d characters of the text", w.Start, w.End, len(chars))
		}
		if err := d.gap(string(chars[at:w.Start])); err != nil {
			return nil, err
		}
		d.Words, d.Spaces = append(d.Words, string(chars[w.Start:w.End])), append(d.Spaces, false)
		at = w.End
	}
	return d, d.gap(string(chars[at:]))
}

// gap adds what is between two words.
func (d *Doc) gap(between string) error {
	if strings.TrimSpace(between) != "" {
		return fmt.Errorf("%.40q belongs to no token; list all words, or leave out \"tokens\"", between)
	}
	if n := len(d.Words); n > 0 && strings.HasPrefix(between, " ") {
		d.Spaces[n-1], between = true, between[1:]
	}
	if between != "" {
		d.Words, d.Spaces = append(d.Words, between), append(d.Spaces, false)
	}
	return nil
}

package catalog

import (
	"bufio"
	"context"
	"errors"
	"path/filepath"

	"github.com/ringtrain/ringtrain/nn/text"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// docInput is a DocDataset of the documents of files or of a stream.
type docInput struct {
	info  Info
	docs  []*text.Doc
	words int
}

var _ DocDataset = (*docInput)(nil)

// readDocInput reads all documents.
func readDocInput(in Input) (Dataset, error) {
	d := &docInput{}
	for part, err := range in.Parts() {
		if err == nil {
			err = d.read(part, in.Stream != nil)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(d.docs) == 0 {
		return nil, within(d.info.Name, errors.New("has no documents; there is nothing to predict"))
	}
	d.info.Test, d.info.Bytes = len(d.docs), docBytes(len(d.docs), d.words)
	return d, nil
}

// read adds the documents of a file or stream. A stream is JSON lines if it begins with a
// brace, and raw text otherwise.
func (d *docInput) read(part Part, stream bool) error {
	name, in := filepath.Base(part.Name), bufio.NewReader(part)
	if stream {
		name = "stream.txt"
		if mark, _ := in.Peek(3); string(mark) == "\xef\xbb\xbf" {
			_, _ = in.Discard(3) // cannot fail: they have been peeked at
		}
		if first, _ := in.Peek(1); string(first) == "{" {
			name = "stream.jsonl"
		}
	}
	f, err := text.FormatOf(name)
	if err != nil {
		return err
	}
	docs, warning, err := data.ReadDocuments(in, part.Name, f)
	if err != nil {
		return err
	}
	if d.info.Name == "" {
		d.info.Name = part.Name
	}
	if warning != "" {
		d.info.Warnings = append(d.info.Warnings, warning)
	}
	for _, doc := range docs {
		d.words += doc.Len()
	}
	d.docs = append(d.docs, docs...)
	return nil
}

// Info implements Dataset.
func (d *docInput) Info() Info { return d.info }

// Task implements Dataset.
func (d *docInput) Task() string { return nerTask }

// Labels implements DocDataset.
func (d *docInput) Labels() map[string]int { return nil }

// Words implements DocDataset.
func (d *docInput) Words() (train, test int) { return 0, d.words }

// Open implements DocDataset.
func (d *docInput) Open(context.Context) (train, test []*text.Doc, sum string, err error) {
	return nil, d.docs, "", nil
}

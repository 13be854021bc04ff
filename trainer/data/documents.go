package data

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/ringtrain/ringtrain/nn/text"
)

// DocumentsInfo describes a corpus that has been read once, to check it.
type DocumentsInfo struct {
	Path        string
	Docs, Words int
	Annotated   bool // some documents are
	// Labels has the number of words in entities of each label.
	Labels map[string]int
	Sum    string // SHA-256 of the file
	// Warning is about mistakes after which reading continued; "" if there are none.
	Warning string
	format  text.Format
}

// ScanDocuments reads a corpus without keeping it. The name of the file tells its format,
// and it may be compressed by gzip. Workers read it again, so it cannot be a pipe.
func ScanDocuments(path string) (*DocumentsInfo, error) {
	f, err := text.FormatOf(filepath.Base(path))
	if err != nil {
		return nil, err
	}
	c := &DocumentsInfo{Path: path, Labels: map[string]int{}, format: f}
	var w warnings
	c.Sum, err = c.read(context.Background(), &w, func(d *text.Doc) {
		c.Docs++
		c.Words += d.Len()
		c.Annotated = c.Annotated || d.Annotated
		for _, e := range d.Entities {
			c.Labels[e.Label] += e.End - e.Start
		}
	})
	if err == nil && c.Docs == 0 {
		err = fmt.Errorf("%s has no documents", path)
	}
	c.Warning = w.String()
	return c, err
}

// warnings counts mistakes and keeps the first.
type warnings struct {
	first error
	count int
}

func (w *warnings) add(err error) {
	if w.count++; w.count == 1 {
		w.first = err
	}
}

// String returns the first mistake and how many followed, or "".
func (w *warnings) String() string {
	switch w.count {
	case 0:
		return ""
	case 1:
		return w.first.Error()
	}
	return fmt.Sprintf("%v (%d warnings in all)", w.first, w.count)
}

// ReadDocuments reads a corpus from r, uncompressed, in the format of the file called
// name. warning is that of a DocumentsInfo.
func ReadDocuments(r io.Reader, name string, f text.Format) (docs []*text.Doc, warning string, err error) {
	var w warnings
	for d, err := range f.Read(r, text.Options{Name: name, Warn: w.add}) {
		if err != nil {
			return nil, "", err
		}
		docs = append(docs, d)
	}
	return docs, w.String(), nil
}

// Documents reads the corpus again.
func (c *DocumentsInfo) Documents(ctx context.Context) ([]*text.Doc, error) {
	docs := make([]*text.Doc, 0, c.Docs)
	sum, err := c.read(ctx, &warnings{}, func(d *text.Doc) { docs = append(docs, d) })
	if err == nil && sum != c.Sum {
		err = fmt.Errorf("%s has changed while it was in use; start again", c.Path)
	}
	return docs, err
}

// read calls f with each document, and returns the SHA-256 of the file.
func (c *DocumentsInfo) read(ctx context.Context, w *warnings, f func(d *text.Doc)) (sum string, err error) {
	if err := ReadableAgain(c.Path, "corpus"); err != nil {
		return "", err
	}
	file, err := os.Open(c.Path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }() // it was only read
	hash := sha256.New()
	raw := io.TeeReader(file, hash)
	in, err := Decompress(raw)
	if err != nil {
		return "", fmt.Errorf("%s: %w", c.Path, err)
	}
	for d, err := range c.format.Read(in, text.Options{Name: c.Path, Warn: w.add}) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return "", err
		}
		f(d)
	}
	if _, err := io.Copy(io.Discard, raw); err != nil { // what the format does not need
		return "", fmt.Errorf("%s: %w", c.Path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// FindDocuments returns the corpus in a directory that is called part, such as "train", with
// a suffix of a format. It does not consider .txt: raw text has no entities.
func FindDocuments(dir, part string) (string, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return "", fmt.Errorf("%s is a file, not a directory with files called train.* and dev.*", dir)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	found := ""
	for _, e := range entries {
		f, err := text.FormatOf(e.Name())
		if !strings.HasPrefix(e.Name(), part+".") || err != nil || f.Name == "txt" {
			continue
		}
		if found != "" {
			return "", fmt.Errorf("%s has both %s and %s; keep one of them", dir, found, e.Name())
		}
		found = e.Name()
	}
	if found == "" {
		return "", fmt.Errorf("%s has no file called %s.conll, %s.iob, %s.jsonl or %s.spacy", dir, part, part, part, part)
	}
	return filepath.Join(dir, found), nil
}

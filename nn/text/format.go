package text

import (
	"fmt"
	"io"
	"iter"
	"strings"
)

// A Format is a format of corpora.
type Format struct {
	Name     string   // such as "conll"
	Suffixes []string // of file names, in lower case
	// Read reads documents, with one of ReadCoNLL, ReadIOB, ReadJSONL, ReadDocBin and
	// ReadPlain.
	Read func(r io.Reader, o Options) iter.Seq2[*Doc, error]
	// Write writes a document as Read reads it. Its errors are those of w, and documents
	// that the format cannot hold. nil if there is no writer.
	Write func(w io.Writer, d *Doc) error
}

// Formats returns all formats.
func Formats() []Format {
	return []Format{
		{"conll", []string{".conll", ".ner", ".bio", ".iob2", ".biluo"}, ReadCoNLL, WriteCoNLL},
		{"iob", []string{".iob"}, ReadIOB, WriteIOB},
		{"jsonl", []string{".jsonl"}, ReadJSONL, WriteJSONL},
		{"spacy", []string{".spacy"}, ReadDocBin, nil},
		{"txt", []string{".txt"}, ReadPlain, nil},
	}
}

// FormatOf returns the format of a file by its name. A ".gz" at its end does not matter.
func FormatOf(file string) (Format, error) {
	name := strings.TrimSuffix(strings.ToLower(file), ".gz")
	var all []string
	for _, f := range Formats() {
		for _, suffix := range f.Suffixes {
			if strings.HasSuffix(name, suffix) {
				return f, nil
			}
			all = append(all, suffix)
		}
	}
	return Format{}, fmt.Errorf("the name %s does not tell its format; it must end in one of %s", file, strings.Join(all, ", "))
}

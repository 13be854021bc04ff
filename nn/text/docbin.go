package text

import (
	"bufio"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"unicode/utf8"

	"github.com/tinylib/msgp/msgp"
)

// The attributes of a DocBin that matter here, as spaCy numbers them.
const (
	attrOrth    = 65
	attrEntIOB  = 77
	attrEntType = 78
)

// mostDocBin is the largest number of bytes of a decompressed DocBin.
const mostDocBin = 1 << 30

// mostAttrs is more than the attributes that spaCy has. Without a limit, an array of small
// numbers takes at least eight times its bytes, and these compress to a thousandth.
const mostAttrs = 256

// ReadDocBin reads documents from a .spacy file: a DocBin of version 0.1, which spaCy 3
// writes. A document is annotated unless the entities of all its words are missing.
// Documents without words are left out, and Options.Warn receives their number. A file may
// have at most 1 GiB when it is decompressed, because its strings come after its words.
func ReadDocBin(r io.Reader, o Options) iter.Seq2[*Doc, error] {
	return func(yield func(*Doc, error) bool) {
		b, err := openDocBin(r, mostDocBin)
		if err != nil {
			yield(nil, fmt.Errorf("%s: %w", o.Name, err))
			return
		}
		row, empty := 0, 0
		for i := range b.docs() {
			n := b.length(i)
			if n == 0 {
				empty++
				continue
			}
			d, err := b.document(row, n, i < len(b.unspaced) && b.unspaced[i])
			if err != nil {
				yield(nil, fmt.Errorf("%s: document %d: %w", o.Name, i+1, err))
				return
			}
			if !yield(d, nil) {
				return
			}
			row += n
		}
		if empty > 0 {
			o.warn(fmt.Errorf("%s: %d of %d documents have no words; they are left out", o.Name, empty, b.docs()))
		}
	}
}

// A docBin is the parts of a DocBin that matter here.
type docBin struct {
	attrs    []uint64
	tokens   []byte // [words of all documents][attrs] uint64
	spaces   []byte // [words of all documents] bool
	lengths  []byte // [documents] int32: words
	strings  map[uint64]string
	unspaced []bool // [documents] or shorter: it is unknown where spaces are
	orth     int    // index in attrs
	iob, ent int    // indices in attrs, or -1
}

// openDocBin decompresses and decodes a DocBin of at most the given number of bytes.
func openDocBin(r io.Reader, most int64) (*docBin, error) {
	z, err := zlib.NewReader(bufio.NewReader(r))
	if err != nil {
		return nil, fmt.Errorf("not a DocBin (.spacy): %w", err)
	}
	raw, err := io.ReadAll(io.LimitReader(z, most+1))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("the file is incomplete: its compressed data ends early")
	case err != nil:
		return nil, fmt.Errorf("the file is damaged: %w", err)
	case int64(len(raw)) > most:
		return nil, fmt.Errorf("the DocBin has more than %d bytes when it is decompressed; divide it into several files", most)
	}
	b := &docBin{strings: map[uint64]string{0: ""}}
	if err := b.decode(raw); err != nil {
		return nil, fmt.Errorf("not a DocBin of version 0.1: %w", err)
	}
	return b, b.check()
}

// decode reads the map that a DocBin is.
func (b *docBin) decode(raw []byte) error {
	n, raw, err := msgp.ReadMapHeaderBytes(raw)
	for range n {
		if err != nil {
			break
		}
		var key []byte
		if key, raw, err = msgp.ReadMapKeyZC(raw); err == nil {
			raw, err = b.field(string(key), raw)
		}
		if err != nil {
			return fmt.Errorf("%.20q: %w", key, err)
		}
	}
	return err
}

// field reads one value of the map and returns the rest.
func (b *docBin) field(key string, raw []byte) (rest []byte, err error) {
	switch key {
	case "version":
		var version string
		if version, rest, err = msgp.ReadStringBytes(raw); err == nil && version != "0.1" {
			err = fmt.Errorf("the version is %.20q", version)
		}
		return rest, err
	case "tokens":
		b.tokens, rest, err = msgp.ReadBytesZC(raw)
		return rest, err
	case "spaces":
		b.spaces, rest, err = msgp.ReadBytesZC(raw)
		return rest, err
	case "lengths":
		b.lengths, rest, err = msgp.ReadBytesZC(raw)
		return rest, err
	case "attrs":
		return elements(raw, func(raw []byte) ([]byte, error) {
			if len(b.attrs) == mostAttrs {
				return nil, fmt.Errorf("there are more than %d attributes; the file is damaged", mostAttrs)
			}
			a, rest, err := msgp.ReadUint64Bytes(raw)
			b.attrs = append(b.attrs, a)
			return rest, err
		})
	case "strings":
		return elements(raw, func(raw []byte) ([]byte, error) {
			s, rest, err := msgp.ReadStringBytes(raw)
			if err == nil && !utf8.ValidString(s) {
				err = fmt.Errorf("%.40q is not UTF-8", s)
			}
			b.strings[StringID(s)] = s
			return rest, err
		})
	case "flags":
		return elements(raw, b.flags)
	}
	return msgp.Skip(raw)
}

// elements calls read for each element of an array.
func elements(raw []byte, read func(raw []byte) (rest []byte, err error)) ([]byte, error) {
	n, raw, err := msgp.ReadArrayHeaderBytes(raw)
	for i := uint32(0); i < n && err == nil; i++ {
		raw, err = read(raw)
	}
	return raw, err
}

// flags reads the flags of a document.
func (b *docBin) flags(raw []byte) ([]byte, error) {
	n, raw, err := msgp.ReadMapHeaderBytes(raw)
	unspaced := false
	for i := uint32(0); i < n && err == nil; i++ {
		var key []byte
		if key, raw, err = msgp.ReadMapKeyZC(raw); err != nil {
			break
		}
		if string(key) == "has_unknown_spaces" {
			unspaced, raw, err = msgp.ReadBoolBytes(raw)
		} else {
			raw, err = msgp.Skip(raw)
		}
	}
	b.unspaced = append(b.unspaced, unspaced)
	return raw, err
}

// check finds the attributes, and returns an error unless the parts fit together.
func (b *docBin) check() error {
	index := map[uint64]int{attrOrth: -1, attrEntIOB: -1, attrEntType: -1}
	for i, a := range b.attrs {
		index[a] = i
	}
	b.orth, b.iob, b.ent = index[attrOrth], index[attrEntIOB], index[attrEntType]
	if b.orth < 0 {
		return errors.New("the DocBin has no words: the attribute ORTH is not stored")
	}
	total := 0
	for i := range b.docs() {
		n := b.length(i)
		if n < 0 {
			return fmt.Errorf("document %d has %d words; the file is damaged", i+1, n)
		}
		total += n
	}
	if len(b.lengths)%4 != 0 || len(b.spaces) != total || len(b.tokens) != 8*len(b.attrs)*total {
		return fmt.Errorf("the documents have %d words of %d attributes, but there are %d bytes of words and %d of spaces; the file is damaged", total, len(b.attrs), len(b.tokens), len(b.spaces))
	}
	return nil
}

// docs returns the number of documents.
func (b *docBin) docs() int { return len(b.lengths) / 4 }

// length returns the number of words of document i.
func (b *docBin) length(i int) int { return int(int32(binary.LittleEndian.Uint32(b.lengths[4*i:]))) }

// at returns an attribute of a word.
func (b *docBin) at(row, attr int) uint64 {
	return binary.LittleEndian.Uint64(b.tokens[8*(row*len(b.attrs)+attr):])
}

// document returns the document of n words from row on.
func (b *docBin) document(row, n int, unspaced bool) (*Doc, error) {
	d := &Doc{Words: make([]string, n)}
	if !unspaced {
		d.Spaces = make([]bool, n)
	}
	tags := make([]Tag, n)
	for i := range n {
		word := b.at(row+i, b.orth)
		w, known := b.strings[word]
		if !known || w == "" {
			return nil, fmt.Errorf("word %d: no string has the hash %d; the file is damaged", i+1, word)
		}
		d.Words[i] = w
		if !unspaced {
			d.Spaces[i] = b.spaces[row+i] != 0
		}
		if b.iob < 0 || b.ent < 0 {
			continue
		}
		var err error
		if tags[i], err = b.tag(row + i); err != nil {
			return nil, fmt.Errorf("word %d, %.40q: %w", i+1, w, err)
		}
	}
	d.SetTags(tags)
	return d, nil
}

// tag returns the tag of a word. A word that begins an entity without a label is blocked:
// spaCy never makes it part of one.
func (b *docBin) tag(row int) (Tag, error) {
	label, known := b.strings[b.at(row, b.ent)]
	if !known {
		return Tag{}, fmt.Errorf("no string has the hash %d of its entity; the file is damaged", b.at(row, b.ent))
	}
	switch iob := b.at(row, b.iob); {
	case iob == 0:
		return Tag{}, nil
	case iob == 2 || iob <= 3 && label == "":
		return Tag{Action: Out}, nil
	case iob == 1:
		return Tag{In, label}, nil
	case iob == 3:
		return Tag{Begin, label}, nil
	default:
		return Tag{}, fmt.Errorf("ENT_IOB must be from 0 to 3, not %d", iob)
	}
}

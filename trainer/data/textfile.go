package data

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"
)

// TextInfo describes a text file in UTF-8 that has been read once, to check it.
type TextInfo struct {
	Path       string
	Chars      int
	Sum        string // SHA-256 of the file
	vocabulary map[rune]int
}

// ScanText reads a text file without keeping it. Errors name the first byte that is not
// UTF-8. Workers read the file again, so it cannot be a pipe.
func ScanText(path string) (*TextInfo, error) {
	t := &TextInfo{Path: path, vocabulary: map[rune]int{}}
	var err error
	t.Sum, err = readText(context.Background(), path, func(c rune) {
		if _, seen := t.vocabulary[c]; !seen {
			t.vocabulary[c] = t.Chars
		}
		t.Chars++
	})
	return t, err
}

// Vocabulary returns the vocabulary of the first chars characters.
func (t *TextInfo) Vocabulary(chars int) (*Vocabulary, error) {
	var known []rune
	for c, first := range t.vocabulary {
		if first < chars {
			known = append(known, c)
		}
	}
	if len(known) > MaxVocabulary {
		return nil, fmt.Errorf("%s has %d different characters, more than the %d that a vocabulary can have", t.Path, len(known), MaxVocabulary)
	}
	return NewVocabulary(known)
}

// IDs reads the text again, as ids of v.
func (t *TextInfo) IDs(ctx context.Context, v *Vocabulary) ([]int32, error) {
	ids := make([]int32, 0, t.Chars)
	sum, err := readText(ctx, t.Path, func(c rune) { ids = append(ids, v.ID(c)) })
	if err == nil && sum != t.Sum {
		err = fmt.Errorf("%s has changed while it was in use; start again", t.Path)
	}
	return ids, err
}

// readText calls f with each character of a file, and returns the SHA-256 of the file.
func readText(ctx context.Context, path string, f func(c rune)) (sum string, err error) {
	if err := ReadableAgain(path, "text"); err != nil {
		return "", err
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if err := eachChar(ctx, io.TeeReader(file, hash), f); err != nil {
		return "", fmt.Errorf("%s: %w", path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// ReadableAgain returns an error for a directory, and for what cannot be read more than once: the
// first process would drain a pipe, and the others would wait for it forever. what names the
// content. A path that does not exist is no error here.
func ReadableAgain(path, what string) error {
	switch info, err := os.Stat(path); {
	case err != nil || info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return fmt.Errorf("%s is a directory: name a file in it", path)
	}
	return fmt.Errorf("%s is not a file: every worker reads the %s, so it cannot be a pipe or a terminal", path, what)
}

// ReadChars returns the characters of a text in UTF-8. Its errors do not name the text.
func ReadChars(r io.Reader) ([]rune, error) {
	var chars []rune
	err := eachChar(context.Background(), r, func(c rune) { chars = append(chars, c) })
	return chars, err
}

// byteOrderMark begins some texts, but is no character of theirs.
const byteOrderMark = '\ufeff'

// eachChar calls f with each character of a text.
func eachChar(ctx context.Context, r io.Reader, f func(c rune)) error {
	in := bufio.NewReaderSize(r, 1<<16)
	for at := 0; ; {
		c, size, err := in.ReadRune()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading the text: %w", err)
		case c == utf8.RuneError && size == 1:
			return fmt.Errorf("not UTF-8: the byte at offset %d is not part of a character; convert the text, for example with iconv", at)
		case at > 0 || c != byteOrderMark:
			f(c)
		}
		if at += size; at%(1<<20) < size && ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

package data

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ringtrain/ringtrain/trainer/atomicfile"
)

// ReadIDX reads an IDX file, plain or compressed by gzip; which of the two is seen
// from its content, whatever its name. Errors name the file and say what was
// expected and what was found.
func ReadIDX(path string) (*IDX, error) {
	f, err := openIDX(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	x, err := decodeIDX(f.r, f.promises)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return x, nil
}

// WriteIDX writes an IDX file, compressed when the name ends in ".gz". The file
// appears whole or not at all: it is written aside, synced and renamed.
func WriteIDX(path string, x *IDX) error {
	t, err := atomicfile.Create(path, atomicfile.Options{})
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer func() { _ = t.Discard() }()
	buffered := bufio.NewWriterSize(t, 1<<16)
	err = x.encodeFor(path, buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = t.Replace()
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// encodeFor writes the tensor in the form that the file's name asks for.
func (x *IDX) encodeFor(path string, w io.Writer) error {
	if !strings.HasSuffix(path, ".gz") {
		return x.Encode(w)
	}
	// Noisy pixels hardly shrink further at higher levels, which take ten times as long.
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if err := x.Encode(z); err != nil {
		return err
	}
	return z.Close()
}

// idxSource is an open IDX file after any decompression.
type idxSource struct {
	r       io.Reader
	size    int64 // of the file
	gzipped bool
	file    *os.File
}

// Close closes the file. It was only read, so there is nothing to report.
func (s *idxSource) Close() { _ = s.file.Close() }

func openIDX(path string) (*idxSource, error) {
	info, err := os.Stat(path) // first: to open a pipe would wait for a writer
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: an IDX file is expected, this is a %s", path, kindOf(info))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	s, err := sniff(f)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// sniff looks at the first bytes of a file to see whether gzip has to be undone.
func sniff(f *os.File) (*idxSource, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	b := bufio.NewReaderSize(f, 1<<16)
	s := &idxSource{r: b, size: info.Size(), file: f}
	if magic, _ := b.Peek(len(gzipMagic)); bytes.Equal(magic, gzipMagic) {
		s.gzipped = true
		s.r, err = newGunzip(b)
	}
	return s, err
}

// promises compares the data length that a header promises with the length of
// the file, before any memory is taken.
func (s *idxSource) promises(dims []int, want int64) error {
	if !s.gzipped {
		return promised(dims, want, s.size-int64(idxHeaderLen(dims)))
	}
	if s.size < want/deflateRatio {
		return fmt.Errorf("%w: its header promises %d bytes of data (dimensions %v), which %d bytes of gzip cannot hold", errTruncated, want, dims, s.size)
	}
	return nil
}

func kindOf(info os.FileInfo) string {
	if info.IsDir() {
		return "directory"
	}
	return "special file"
}

// checkIDX reads the header of an IDX file and compares it with the length of
// the file, without reading the data where that can be helped.
func checkIDX(path string) ([]int, error) {
	f, err := openIDX(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	dims, want, err := decodeIDXHeader(f.r)
	if err == nil {
		err = f.checkLength(dims, want)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return dims, nil
}

// checkLength compares the data length that a header promises with what is there.
func (s *idxSource) checkLength(dims []int, want int64) error {
	if err := s.promises(dims, want); err != nil || !s.gzipped {
		return err
	}
	// A gzip file ends in the length of its content modulo 2^32. A file cut off
	// while it was copied ends in something else, and so may one of several
	// members, whose content has to be counted.
	var tail [4]byte
	if _, err := s.file.ReadAt(tail[:], s.size-4); err == nil && binary.LittleEndian.Uint32(tail[:]) == uint32(int64(idxHeaderLen(dims))+want) {
		return nil
	}
	n, err := io.Copy(io.Discard, io.LimitReader(s.r, want+1))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %d bytes of data expected, %d found (dimensions %v)", short(err), want, n, dims)
	case n != want:
		return fmt.Errorf("%d bytes of data expected, %s found (dimensions %v)", want, atLeast(n, want), dims)
	}
	return nil
}

// atLeast words a count that stopped one past the limit.
func atLeast(n, limit int64) string {
	if n > limit {
		return "more"
	}
	return fmt.Sprint(n)
}

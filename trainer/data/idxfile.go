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

// ReadIDX reads an IDX file, plain or gzipped. It detects compression from the content,
// not from the name. Errors name the file and say what was expected and what was found.
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

// WriteIDX writes an IDX file, gzipped if the name ends in ".gz". The write is atomic: a
// temporary file is written, synced and renamed.
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

// encodeFor writes the tensor in the format that the file's name asks for.
func (x *IDX) encodeFor(path string, w io.Writer) error {
	if !strings.HasSuffix(path, ".gz") {
		return x.Encode(w)
	}
	// Higher levels take ten times as long and hardly shrink noisy pixels further.
	z, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	if err := x.Encode(z); err != nil {
		return err
	}
	return z.Close()
}

// idxSource is an open IDX file that reads decompressed data.
type idxSource struct {
	r       io.Reader
	size    int64 // of the file
	gzipped bool
	file    *os.File
}

// Close closes the file. It was only read, so there is no error to report.
func (s *idxSource) Close() { _ = s.file.Close() }

func openIDX(path string) (*idxSource, error) {
	info, err := os.Stat(path) // first, because opening a pipe would wait for a writer
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: expected an IDX file, but this is a %s", path, kindOf(info))
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

// sniff detects gzip from the first bytes of a file.
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

// promises compares the data length that a header promises with the length of the file,
// before memory is allocated.
func (s *idxSource) promises(dims []int, want int64) error {
	if !s.gzipped {
		return promised(dims, want, s.size-int64(idxHeaderLen(dims)))
	}
	if s.size < want/deflateRatio {
		return fmt.Errorf("%w: the header promises %d bytes of data (dimensions %v), which %d bytes of gzip cannot hold", errTruncated, want, dims, s.size)
	}
	return nil
}

func kindOf(info os.FileInfo) string {
	if info.IsDir() {
		return "directory"
	}
	return "special file"
}

// checkIDX reads the header of an IDX file and compares it with the length of the file.
// It reads the data only if it must.
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

// checkLength compares the data length that a header promises with the actual length.
func (s *idxSource) checkLength(dims []int, want int64) error {
	if err := s.promises(dims, want); err != nil || !s.gzipped {
		return err
	}
	// A gzip file ends with the length of its content modulo 2^32. A truncated file
	// ends with something else, and so may one with several members, so their content
	// must be counted.
	var tail [4]byte
	if _, err := s.file.ReadAt(tail[:], s.size-4); err == nil && binary.LittleEndian.Uint32(tail[:]) == uint32(int64(idxHeaderLen(dims))+want) {
		return nil
	}
	n, err := io.Copy(io.Discard, io.LimitReader(s.r, want+1))
	switch {
	case err != nil && n >= want:
		return err
	case err != nil:
		return fmt.Errorf("%w: expected %d bytes of data, found %d (dimensions %v)", short(err), want, n, dims)
	case n != want:
		return fmt.Errorf("expected %d bytes of data, found %s (dimensions %v)", want, atLeast(n, want), dims)
	}
	return nil
}

// atLeast formats a count that stopped one past the limit.
func atLeast(n, limit int64) string {
	if n > limit {
		return "more"
	}
	return fmt.Sprint(n)
}

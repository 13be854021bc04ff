package data

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/ringtrain/ringtrain/nn/text"
)

// MNISTConflict returns an error if WriteMNIST would replace files of other images in a
// directory, unless replace is set, or if the directory has other files that OpenMNIST might
// read instead of the new ones.
func MNISTConflict(dir string, train, test *Images, replace bool) error {
	written := map[string]*IDX{}
	for name, x := range idxFiles(train, test) {
		written[name+".gz"] = x
	}
	return conflicts(dir, replace, func(name string) (bool, func(io.Writer) error) {
		x, ours := written[name]
		if !ours {
			return idxName.MatchString(name), nil
		}
		return true, func(w io.Writer) error { return x.encodeFor(name, w) }
	})
}

// SentencesConflict is MNISTConflict for WriteSentences.
func SentencesConflict(dir string, f text.Format, o SentencesOptions, replace bool) error {
	train, dev := Sentences(o)
	return conflicts(dir, replace, func(name string) (bool, func(io.Writer) error) {
		part, _, _ := strings.Cut(name, ".")
		format, err := text.FormatOf(name)
		used := err == nil && format.Name != "txt" && (part == "train" || part == "dev")
		switch name {
		case "train" + f.Suffixes[0]:
			return used, func(w io.Writer) error { return encodeDocs(w, f, train) }
		case "dev" + f.Suffixes[0]:
			return used, func(w io.Writer) error { return encodeDocs(w, f, dev) }
		}
		return used, nil
	})
}

// conflicts returns an error for the first file in a directory that a reader would use instead
// of a new one, or that a new one would replace with other content. For the name of a file, of
// returns whether a reader uses it, and what writes the new one; nil if there is none.
func conflicts(dir string, replace bool, of func(name string) (used bool, write func(io.Writer) error)) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // writing says so
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		used, write := of(e.Name())
		path := filepath.Join(dir, e.Name())
		switch {
		case !used:
		case write == nil:
			return fmt.Errorf("%s exists, so training could not tell which files to read: remove it, or write to another directory", path)
		case replace || holds(path, write):
		default:
			return fmt.Errorf("%s exists with other content: write to another directory, or add --force to replace it", path)
		}
	}
	return nil
}

// holds reports whether a file has the content that write writes.
func holds(path string, write func(io.Writer) error) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	m := &matcher{from: bufio.NewReaderSize(f, 1<<16)}
	if write(m) != nil {
		return false
	}
	_, err = m.from.ReadByte()
	return errors.Is(err, io.EOF)
}

// errDiffers ends a comparison.
var errDiffers = errors.New("the content differs")

// A matcher is an io.Writer that compares what it gets with the content of a file.
type matcher struct {
	from *bufio.Reader
	has  []byte
}

// Write implements io.Writer. It returns errDiffers at the first difference.
func (m *matcher) Write(b []byte) (int, error) {
	m.has = append(m.has[:0], b...)
	if _, err := io.ReadFull(m.from, m.has); err != nil || !bytes.Equal(m.has, b) {
		return 0, errDiffers
	}
	return len(b), nil
}

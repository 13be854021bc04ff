package catalog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// An Input is unlabelled rows for a trained model: the content of files, or of a stream.
// The zero Input is empty.
type Input struct {
	// Files are read one after the other, in order. Catalog.Input puts the files of a
	// directory in its place.
	Files []string
	// Stream is read instead of Files if it is not nil, and only once.
	Stream io.Reader
}

// StreamName stands for a stream in file names and in errors.
const StreamName = "-"

// A Part is the content of one file of an Input, or of its stream.
type Part struct {
	Name string // for errors
	io.Reader
}

// Parts returns the files of the input in order, or the stream. Each is valid until the
// next one. Content that is compressed by gzip is decompressed.
func (in Input) Parts() iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		if in.Stream != nil {
			r, err := data.Decompress(in.Stream)
			yield(Part{Name: "stdin", Reader: r}, within("stdin", err))
			return
		}
		for _, name := range in.Files {
			if !openPart(name, yield) {
				return
			}
		}
	}
}

// openPart yields one file and closes it. It reports whether to continue.
func openPart(name string, yield func(Part, error) bool) bool {
	f, err := os.Open(name)
	if err != nil {
		yield(Part{}, err)
		return false
	}
	defer func() { _ = f.Close() }() // it was only read
	r, err := data.Decompress(f)
	return yield(Part{Name: name, Reader: r}, within(name, err)) && err == nil
}

// within adds the name of a Part to an error.
func within(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", name, err)
}

// First returns an Input like in whose first Part begins with what look has read. look
// may read what it needs to find out what the rows are.
func (in Input) First(look func(p Part) error) (Input, error) {
	var read strings.Builder
	for part, err := range in.Parts() {
		if err == nil {
			err = look(Part{Name: part.Name, Reader: io.TeeReader(part.Reader, &read)})
		}
		if in.Stream != nil {
			in.Stream = io.MultiReader(strings.NewReader(read.String()), part.Reader)
		}
		return in, err
	}
	return in, nil
}

// Input finds the rows of files or a stream. format is a kind of data; if it is empty, the
// names of the files decide. Like Data it reads only headers.
func (c *Catalog) Input(format string, in Input) (Dataset, error) {
	if format != "" {
		if k, ok := c.data[format]; !ok || k.Input == nil {
			return nil, fmt.Errorf("unknown --input-format %q; use %s", format, c.formatList())
		}
	}
	files, err := expand(in.Files)
	if err != nil {
		return nil, err
	}
	in.Files = files
	if format == "" && in.Stream != nil {
		return nil, fmt.Errorf("a stream has no name that tells its format; give --input-format %s", c.formatList())
	}
	if format == "" {
		if format, err = c.formatOf(in.Files); err != nil {
			return nil, err
		}
	}
	return c.data[format].Input(in)
}

// InputFormats returns the kinds of data whose rows may come from files, sorted by name.
func (c *Catalog) InputFormats() []string {
	return slices.DeleteFunc(c.DataKinds(), func(kind string) bool { return c.data[kind].Input == nil })
}

// formatList lists the formats for errors: "idx, npy or png".
func (c *Catalog) formatList() string { return config.Either(c.InputFormats()) }

// expand puts the files of directories in their place, in the order of their names.
// Hidden files are left out, and so are directories in them.
func expand(names []string) ([]string, error) {
	var out []string
	for _, name := range names {
		info, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("%s: %w; name a file of rows, or a directory of such files", name, errors.Unwrap(err))
		case err != nil:
			return nil, err
		case !info.IsDir():
			out = append(out, name)
			continue
		}
		entries, err := os.ReadDir(name) // sorted
		if err != nil {
			return nil, err
		}
		before, directories := len(out), 0
		for _, e := range entries {
			switch {
			case strings.HasPrefix(e.Name(), "."):
			case e.IsDir():
				directories++
			default:
				out = append(out, filepath.Join(name, e.Name()))
			}
		}
		switch {
		case len(out) > before:
		case directories > 0:
			return nil, fmt.Errorf("the directory %s has only directories; give %s", name, filepath.Join(name, "*"))
		default:
			return nil, fmt.Errorf("the directory %s has no files", name)
		}
	}
	return out, nil
}

// formatOf returns the one format of files.
func (c *Catalog) formatOf(files []string) (string, error) {
	format := ""
	for _, name := range files {
		f := c.formatOfName(name)
		switch {
		case f == "" && foreign(name) != "":
			return "", fmt.Errorf("%s: %s is not supported; convert it to PNG (supported: %s)", name, foreign(name), c.formatList())
		case f == "":
			return "", fmt.Errorf("the name %s does not tell its format; give --input-format %s", name, c.formatList())
		case format != "" && f != format:
			return "", fmt.Errorf("%s is of the format %s, but %s is of the format %s; files of one call must have one format", files[0], format, name, f)
		}
		format = f
	}
	if format == "" {
		return "", errors.New("there are no files")
	}
	return format, nil
}

// foreign returns the common format of images that the suffix of a name tells, or "". No built-in
// kind of data reads them.
func foreign(name string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".jpg", ".jpeg":
		return "JPEG"
	case ".gif":
		return "GIF"
	case ".webp":
		return "WebP"
	case ".bmp":
		return "BMP"
	case ".tif", ".tiff":
		return "TIFF"
	}
	return ""
}

// formatOfName returns the kind of data with the longest suffix of a file's name, or "".
func (c *Catalog) formatOfName(name string) string {
	name = strings.TrimSuffix(strings.ToLower(name), ".gz")
	format, longest := "", 0
	for _, kind := range c.InputFormats() {
		for _, suffix := range c.data[kind].Suffixes {
			if strings.HasSuffix(name, suffix) && len(suffix) > longest {
				format, longest = kind, len(suffix)
			}
		}
	}
	return format
}

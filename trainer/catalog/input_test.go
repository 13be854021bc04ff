package catalog_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// put writes files into a new directory.
func put(t *testing.T, files map[string]string) (dir string) {
	dir = t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	return dir
}

// gray returns a PNG of 2x3 whose first pixel has a value.
func gray(t *testing.T, first byte) string {
	m := image.NewGray(image.Rect(0, 0, 3, 2))
	m.Pix[0] = first
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, m))
	return b.String()
}

// idx returns an IDX file of images of 2x3.
func idx(t *testing.T, first ...byte) string {
	x := &data.IDX{Dims: []int{len(first), 2, 3}, Data: make([]byte, 6*len(first))}
	for i, v := range first {
		x.Data[6*i] = v
	}
	var b bytes.Buffer
	require.NoError(t, x.Encode(&b))
	return b.String()
}

func zipped(t *testing.T, content string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := io.WriteString(z, content)
	require.NoError(t, errors.Join(err, z.Close()))
	return b.String()
}

// firsts returns the first pixels of images of 2x3, times 255, and their files.
func firsts(t *testing.T, d catalog.Dataset) (values []int, files []string, err error) {
	images := d.(catalog.ImageInput)
	require.NoError(t, images.CheckSize(2, 3))
	for image, err := range images.Images(2, 3) {
		if err != nil {
			return values, files, err
		}
		values, files = append(values, int(image.Pixels[0]*255+.5)), append(files, filepath.Base(image.File))
	}
	return values, files, nil
}

// Names tell formats; directories stand for their files in order; content may be
// compressed, whatever its name.
func TestInputFiles(t *testing.T) {
	c := catalog.New()
	require.Equal(t, []string{"csv", "idx", "ner", "npy", "png", "text"}, c.InputFormats())
	dir := put(t, map[string]string{
		"p/b.png": gray(t, 2), "p/a.png": gray(t, 1), "p/.hidden": "x", "p/sub/c.png": gray(t, 9), "z.PNG": gray(t, 3),
		"t-idx3-ubyte": idx(t, 4, 5), "t.idx.gz": zipped(t, idx(t, 6)), "other": idx(t, 7),
	})
	for _, test := range []struct {
		format string
		files  string
		want   []int
		named  string
	}{
		{"", "p", []int{1, 2}, "a.png b.png"},
		{"", "z.PNG p p/a.png", []int{3, 1, 2, 1}, "z.PNG a.png b.png a.png"},
		{"", "t-idx3-ubyte t.idx.gz", []int{4, 5, 6}, ". . ."},
		{"idx", "other t.idx.gz", []int{7, 6}, ". ."},
	} {
		var in catalog.Input
		for name := range strings.FieldsSeq(test.files) {
			in.Files = append(in.Files, filepath.Join(dir, name))
		}
		d, err := c.Input(test.format, in)
		require.NoError(t, err, test.files)
		for range 2 { // files can be read again
			got, names, err := firsts(t, d)
			require.NoError(t, err)
			require.Equal(t, test.want, got)
			require.Equal(t, test.named, strings.Join(names, " "))
		}
	}
	d, err := c.Test("png:"+filepath.Join(dir, "p"), false)
	require.NoError(t, err)
	got, _, err := firsts(t, d)
	require.NoError(t, err)
	require.Equal(t, []int{1, 2}, got)
}

// A stream is read as its rows are needed.
func TestInputStream(t *testing.T) {
	c := catalog.New()
	for format, content := range map[string]string{"idx": idx(t, 4, 5), "png": gray(t, 4) + gray(t, 5)} {
		for _, content := range []string{content, zipped(t, content)} {
			d, err := c.Input(format, catalog.Input{Stream: strings.NewReader(content)})
			require.NoError(t, err)
			got, _, err := firsts(t, d)
			require.NoError(t, err)
			require.Equal(t, []int{4, 5}, got)
		}
	}
	stream, fill := io.Pipe()
	var filling sync.WaitGroup
	defer filling.Wait()
	filling.Go(func() { _, _ = io.WriteString(fill, idx(t, 1, 2)[:16+6]) }) // the second image never comes
	d, err := c.Input("idx", catalog.Input{Stream: stream})
	require.NoError(t, err)
	for image, err := range d.(catalog.ImageInput).Images(2, 3) {
		require.NoError(t, err)
		require.Equal(t, float32(1)/255, image.Pixels[0])
		break
	}
	require.NoError(t, stream.Close())
}

// Who names a file and not the kind of its rows learns how to name both.
func TestDataWithoutKind(t *testing.T) {
	c := catalog.New()
	for name, want := range map[string]string{
		"/path/rent.csv":   `unknown data "/path/rent.csv"; did you mean csv:/path/rent.csv?`,
		"rent.TSV.gz":      `; did you mean csv:rent.TSV.gz?`,
		"book.txt":         `; did you mean text:book.txt?`,
		"corpus/train.iob": `; did you mean ner:corpus?`,
		"corpus/dev.jsonl": `; did you mean ner:corpus?`,
		"images.npy":       `unknown data "images.npy"; use `,
		"rent":             `unknown data "rent"; use `,
	} {
		_, err := c.Data(name, catalog.Options{})
		require.ErrorContains(t, err, want)
	}
	_, err := c.Test("images.npy", false)
	require.EqualError(t, err, `unknown data "images.npy"; did you mean npy:images.npy?`)
	_, err = c.Test("corpus/dev.jsonl", true)
	require.ErrorContains(t, err, "; did you mean ner:corpus/dev.jsonl?")
	_, err = c.Test("images.npy", true)
	require.ErrorContains(t, err, `unknown data "images.npy"; use `)
}

// Mistakes name the file, and the rows before them are read.
func TestInputMistakes(t *testing.T) {
	c := catalog.New()
	dir := put(t, map[string]string{"a.png": gray(t, 1), "b.png": "no picture", "c.npy": "no array", "d.csvx": "x", "photo.JPG": "x", "short-ubyte": idx(t, 1, 2)[:27]})
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "empty", ".hidden"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "classes", "cat"), 0o755))
	for _, test := range []struct{ format, files, want string }{
		{"", "nosuch.png", filepath.Join(dir, "nosuch.png") + ": no such file or directory; name a file of rows, or a directory of such files"},
		{"", "empty", "empty has no files"},
		{"", "classes", "classes has only directories; give " + filepath.Join(dir, "classes", "*")},
		{"", "photo.JPG", "photo.JPG: JPEG is not supported; convert it to PNG (supported: csv, idx, ner, npy, png or text)"},
		{"", "d.csvx", "d.csvx does not tell its format; give --input-format csv, idx, ner, npy, png or text"},
		{"", "a.png c.npy", "a.png is of the format png, but "},
		{"jpeg", "a.png", `unknown --input-format "jpeg"; use csv, idx, ner, npy, png or text`},
		{"digits", "a.png", `unknown --input-format "digits"`},
		{"", "b.png", "b.png: not a PNG image"},
		{"", "c.npy", "c.npy: not a NumPy file"},
		{"", "short-ubyte", "truncated"},
		{"", "", "there are no files"},
	} {
		var in catalog.Input
		for name := range strings.FieldsSeq(test.files) {
			in.Files = append(in.Files, filepath.Join(dir, name))
		}
		_, err := c.Input(test.format, in)
		require.ErrorContains(t, err, test.want)
	}
	_, err := c.Input("", catalog.Input{Stream: strings.NewReader("")})
	require.ErrorContains(t, err, "a stream has no name")

	d, err := c.Input("", catalog.Input{Files: []string{filepath.Join(dir, "a.png"), filepath.Join(dir, "b.png")}})
	require.NoError(t, err)
	got, _, err := firsts(t, d)
	require.ErrorContains(t, err, "b.png: not a PNG image")
	require.Equal(t, []int{1}, got)
	require.ErrorContains(t, d.(catalog.ImageInput).CheckSize(3, 3), "images of 2x3, but the model is for 3x3")
}

// Predictions before a bad row are made, and a batch is no limit.
func TestPredictInput(t *testing.T) {
	firsts := make([]byte, 300)
	c := catalog.New()
	cfg := parse(t, "[model]\n@layers = \"Softmax.v1\"\n")
	s, _, err := c.Stored(map[string]string{"config": cfg.Text(), "height": "2", "width": "3", "classes": "10"})
	require.NoError(t, err)
	d, err := c.Input("idx", catalog.Input{Stream: strings.NewReader(idx(t, firsts...)[:16+6*290+1])})
	require.NoError(t, err)
	require.NoError(t, s.Fits(d))
	examples, err := s.Open(t.Context(), d)
	require.NoError(t, err)
	b := cpu.New(cpu.Options{})
	defer b.Close()
	_, err = examples.Task(b)
	require.ErrorContains(t, err, "no labels")
	p, err := examples.Predictor(b)
	require.NoError(t, err)
	rows := 0
	for one, err := range p.All(t.Context()) {
		if rows == 290 {
			require.ErrorContains(t, err, "stdin: row 290: truncated")
			break
		}
		require.NoError(t, err)
		require.Equal(t, rows, one[0].Value)
		rows++
	}
	require.Equal(t, 290, rows)
}

// The rows of a CSV file are read as they are needed, and those before a bad cell or a bad
// line are predicted.
func TestPredictTable(t *testing.T) {
	for bad, want := range map[string]string{
		"many\n3\n": `stdin:592: column "a": "many" is not a number`,
		"1,2\n":     "stdin:592: the line has 2 columns, but the header has 1",
		"":          "",
	} {
		d, err := catalog.New().Input("csv", catalog.Input{Stream: strings.NewReader("a\n" + strings.Repeat("1.5\n", 590) + bad)})
		require.NoError(t, err)
		examples := storedLine(t, d)
		_, err = examples.Task(nil)
		require.ErrorContains(t, err, "name the file with --data")
		p, err := examples.Predictor(cpu.New(cpu.Options{}))
		require.NoError(t, err)
		rows := 0
		for one, err := range p.All(t.Context()) {
			if rows == 590 {
				require.ErrorContains(t, err, want)
				break
			}
			require.NoError(t, err)
			require.Equal(t, rows, one[0].Value)
			rows++
		}
		require.Equal(t, 590, rows, bad)
	}
}

// Predictions begin before the end of a stream.
func TestPredictTableStream(t *testing.T) {
	stream, fill := io.Pipe()
	var filling sync.WaitGroup
	defer filling.Wait()
	filling.Go(func() {
		for _, err := io.WriteString(fill, "a\n"); err == nil; _, err = io.WriteString(fill, strings.Repeat("1\n", 1000)) {
		}
	})
	d, err := catalog.New().Input("csv", catalog.Input{Stream: stream})
	require.NoError(t, err)
	p, err := storedLine(t, d).Predictor(cpu.New(cpu.Options{}))
	require.NoError(t, err)
	rows := 0
	for _, err := range p.All(t.Context()) {
		require.NoError(t, err)
		if rows++; rows == 2000 {
			break
		}
	}
	require.NoError(t, stream.Close())
}

// storedLine is a stored model that predicts column b from column a, with the rows of d.
func storedLine(t *testing.T, d catalog.Dataset) catalog.Examples {
	t.Helper()
	s, _, err := catalog.New().Stored(map[string]string{
		"config": "[model]\n@layers = \"Linear.v1\"\n", "task": "regression.v1",
		"table": `{"target": "b", "columns": [{"name": "a", "mean": 0, "deviation": 1}], "mean": 2, "deviation": 1}`,
	})
	require.NoError(t, err)
	require.NoError(t, s.Fits(d))
	examples, err := s.Open(t.Context(), d)
	require.NoError(t, err)
	return examples
}

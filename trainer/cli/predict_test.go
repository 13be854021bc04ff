package cli_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// varied writes weights of a perceptron that depend on every pixel.
func varied(t *testing.T) (path string) {
	f := checkpoint.File{Metadata: perceptronNotes}
	for _, p := range perceptronShapes {
		values := make([]float32, tensor.Shape(p.shape).TotalSize())
		for i := range values {
			values[i] = float32(math.Sin(float64(i*i%1009))) * .1
		}
		f.Tensors = append(f.Tensors, checkpoint.Named{Name: p.name, Tensor: tensor.New(tensor.WithShape(p.shape...), tensor.WithBacking(values))})
	}
	path = filepath.Join(t.TempDir(), "w")
	require.NoError(t, checkpoint.Save(path, f))
	return path
}

// saved writes the small test images as IDX, as a NumPy array, and the first
// three as PNG.
func saved(t *testing.T) (dir string) {
	set, err := openSmall()
	require.NoError(t, err)
	dir, m := t.TempDir(), set.Test
	require.NoError(t, data.WriteIDX(filepath.Join(dir, "images-idx3-ubyte.gz"), &data.IDX{Dims: []int{m.Rows, 14, 14}, Data: m.Pixels}))
	header := fmt.Sprintf("{'descr': '|u1', 'fortran_order': False, 'shape': (%d, 196), }\n", m.Rows)
	array := append([]byte("\x93NUMPY\x01\x00"+string([]byte{byte(len(header)), 0})+header), m.Pixels...)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "images.npy"), array, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "png"), 0o755))
	for i := range 3 {
		var b bytes.Buffer
		require.NoError(t, png.Encode(&b, &image.Gray{Pix: m.Image(i), Stride: 14, Rect: image.Rect(0, 0, 14, 14)}))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "png", fmt.Sprintf("%d.png", i)), b.Bytes(), 0o600))
	}
	return dir
}

// The same images get the same predictions, from any file and from stdin.
func TestPredictFiles(t *testing.T) {
	weights, dir := varied(t), saved(t)
	code, want, stderr := result("predict", weights, "--data", "mnist:"+smallDir())
	require.Zero(t, code, stderr)
	require.Equal(t, 300, strings.Count(want, "\n"))
	idx, npy := filepath.Join(dir, "images-idx3-ubyte.gz"), filepath.Join(dir, "images.npy")
	for _, args := range [][]string{{idx}, {npy}, {npy, "--input-format", "npy"}} {
		code, got, stderr := result(append([]string{"predict", weights}, args...)...)
		require.Zero(t, code, stderr)
		require.Equal(t, want, got)
	}
	for format, file := range map[string]string{"idx": idx, "npy": npy} {
		code, got, stderr := piped(t, file, "predict", weights, "-", "--input-format", format)
		require.Zero(t, code, stderr)
		require.Equal(t, want, got)
	}

	code, got, stderr := result("predict", weights, filepath.Join(dir, "png"))
	require.Zero(t, code, stderr)
	lines, first := strings.Split(got, "\n"), strings.Split(want, "\n")
	require.Len(t, lines, 4)
	for i := range 3 {
		require.Equal(t, fmt.Sprintf("%s %s/png/%d.png", first[i], dir, i), lines[i])
	}
}

// piped runs a command whose stdin is a file.
func piped(t *testing.T, file string, args ...string) (code int, stdout, stderr string) {
	in, err := os.Open(file)
	require.NoError(t, err)
	defer in.Close()
	cmd := command(t, args...)
	var out, news bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &news
	_ = cmd.Run() // the code tells
	return cmd.ProcessState.ExitCode(), out.String(), news.String()
}

// JSON and CSV have the same fields in the same order, with all digits.
func TestPredictFormats(t *testing.T) {
	weights, dir := varied(t), saved(t)
	pictures := filepath.Join(dir, "png")
	_, asJSON, _ := result("predict", weights, pictures, "--json")
	_, same, _ := result("predict", weights, pictures, "--format", "json")
	require.Equal(t, asJSON, same)
	code, asCSV, stderr := result("predict", weights, pictures, "--format", "csv")
	require.Zero(t, code, stderr)
	rows, err := csv.NewReader(strings.NewReader(asCSV)).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 4)
	require.Equal(t, []string{"row", "class", "probability", "file"}, rows[0])
	for i, line := range strings.Split(strings.TrimSpace(asJSON), "\n") {
		require.Regexp(t, `^\{"row":\d,"class":\d,"probability":0?[.\d]+,"file":".*/\d.png"\}$`, line)
		var one map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &one))
		for k, name := range rows[0] {
			require.Equal(t, fmt.Sprint(one[name]), rows[i+1][k])
		}
	}
}

// The rows before a bad one are printed.
func TestPredictBadRow(t *testing.T) {
	weights, dir := varied(t), saved(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "png", "2.png"), []byte("no picture at all, although named as one"), 0o600))
	code, got, stderr := result("predict", weights, filepath.Join(dir, "png"), "--format", "csv")
	require.Equal(t, 1, code)
	require.Equal(t, 3, strings.Count(got, "\n"))
	require.Equal(t, "ringtrain: "+filepath.Join(dir, "png", "2.png")+": not a PNG image: it has no PNG signature\n", stderr)
}

// Mistakes that show before the first row are one line and exit code 2.
func TestPredictMistakes(t *testing.T) {
	weights, dir := varied(t), saved(t)
	npy, small := filepath.Join(dir, "images.npy"), filepath.Join(dir, "small.png")
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, 8, 9))))
	require.NoError(t, os.WriteFile(small, b.Bytes(), 0o600))
	for want, args := range map[string]string{
		"--json cannot be combined with --format csv":      npy + " --json --format csv",
		"--format must be table, json or csv":              npy + " --format xml",
		"--data cannot be combined with FILE " + npy:       npy + " --data digits",
		"--data is empty":                                  "--data=",
		"- (stdin) cannot be combined with other FILEs":    "- " + npy,
		"stdin has no name that tells its format":          "-",
		"--input-format needs a FILE":                      "--input-format npy",
		`unknown --input-format "x"; use `:                 npy + " --input-format x",
		"nosuch.npy: no such file":                         "nosuch.npy",
		"images of 14x14, but those of " + small + " have": small,
	} {
		require.Contains(t, refused(t, append([]string{"predict", weights}, strings.Fields(args)...)...), want)
	}
}

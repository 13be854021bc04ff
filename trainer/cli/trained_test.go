package cli_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// perceptronNotes and perceptronShapes describe a model for images of 14 by 14.
var (
	perceptronNotes = map[string]string{
		"format": checkpoint.Format, "step": "7", "height": "14", "width": "14", "classes": "10",
		"config": "[model]\n@layers = \"relu_relu_softmax.v1\"\nhidden_width = 8\ndropout = 0\n[optimizer]\n@optimizers = \"Adam.v1\"\n",
	}
	perceptronShapes = []struct {
		name  string
		shape []int
	}{
		{"layers.0.W", []int{8, 196}}, {"layers.0.b", []int{8}}, {"layers.1.W", []int{8, 8}}, {"layers.1.b", []int{8}},
		{"layers.2.W", []int{10, 8}}, {"layers.2.b", []int{10}},
	}
)

// perceptron writes weights, each of them v, with some notes changed.
func perceptron(t *testing.T, path string, v float32, changed map[string]string) string {
	f := checkpoint.File{Metadata: maps.Clone(perceptronNotes)}
	maps.Copy(f.Metadata, changed)
	for _, p := range perceptronShapes {
		dense := tensor.New(tensor.WithShape(p.shape...), tensor.Of(tensor.Float32))
		require.NoError(t, dense.Memset(v))
		f.Tensors = append(f.Tensors, checkpoint.Named{Name: p.name, Tensor: dense})
	}
	require.NoError(t, checkpoint.Save(path, f))
	return path
}

// huge writes a sparse file with one tensor of floats and the given notes.
func huge(t *testing.T, path, name string, elements int64, notes map[string]string) string {
	var text []string
	for k, v := range notes {
		text = append(text, fmt.Sprintf("%q:%q", k, v))
	}
	header := fmt.Sprintf(`{"__metadata__":{%s},%q:{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}`, strings.Join(text, ","), name, elements, 4*elements)
	raw := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	require.NoError(t, os.WriteFile(path, append(raw, header...), 0o666))
	if err := os.Truncate(path, int64(8+len(header))+4*elements); err != nil {
		t.Skip("no sparse files here:", err)
	}
	return path
}

// refused runs a command that must end with one line and exit code 2, without using
// much memory.
func refused(t *testing.T, args ...string) (stderr string) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	code, stdout, stderr := result(args...)
	runtime.ReadMemStats(&after)
	require.Equal(t, 2, code, "%v: %s", args, stderr)
	require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
	require.Empty(t, stdout)
	require.Less(t, (after.TotalAlloc-before.TotalAlloc)>>20, uint64(40), "MiB, in %v", args)
	return stderr
}

// The notes about the model are compared with the tensors in the file before memory is
// allocated for either.
func TestWeightsThatTheirNotesDoNotFit(t *testing.T) {
	set := "mnist:" + smallDir()
	wide := strings.Replace(perceptronNotes["config"], "= 8", "= 1000000", 1)
	good := perceptron(t, filepath.Join(t.TempDir(), "good"), .1, nil)
	code, _, stderr := result("eval", good, "--data", set)
	require.Zero(t, code, stderr)
	for want, notes := range map[string]map[string]string{
		"its layers.2.W has shape [10 8], the model's [3000000 8]":    {"classes": "3000000"},
		"its layers.0.W has shape [8 196], the model's [1000000 196":  {"config": wide},
		"its layers.0.W has shape [8 196], the model's [8 429496729":  {"height": "65536", "width": "65536"},
		"do not describe the images":                                  {"classes": "0"},
		"it does not describe its model; it was not written by ringt": {"format": "pt"},
	} {
		path := perceptron(t, filepath.Join(t.TempDir(), "w"), .1, notes)
		for _, command := range []string{"eval", "predict"} {
			require.Contains(t, refused(t, command, path, "--data", set), want)
		}
	}
}

// A file of 80 GB is rejected by its header.
func TestWeightsBeyondAnyModel(t *testing.T) {
	const elements = 20e9
	set, dir := "mnist:"+smallDir(), t.TempDir()
	path := huge(t, filepath.Join(dir, "model.safetensors"), "layers.0.W", elements, perceptronNotes)
	for _, args := range [][]string{{"eval", path}, {"predict", path}, {"eval", dir}, {"predict", dir}} {
		require.Contains(t, refused(t, append(args, "--data", set)...), "its layers.0.W has shape [20000000000], the model's [8 196]")
	}
	resume := t.TempDir()
	notes := maps.Clone(perceptronNotes)
	notes["sha256"] = "00"
	huge(t, filepath.Join(resume, checkpoint.FileName(7)), "optimizer/m/layers.0.W", elements, notes)
	require.Contains(t, refused(t, small(t, "--resume", resume, "--transport", "inproc")...), "it does not fit the model: it has no layers.0.W")
	huge(t, filepath.Join(resume, checkpoint.FileName(8)), "layers.0.W", elements, perceptronNotes)
	require.Contains(t, refused(t, small(t, "--resume", resume, "--transport", "inproc")...), "it has no SHA-256 of its content")
}

// Weights with a NaN or an infinity are rejected, as by --resume.
func TestWeightsThatAreNotFinite(t *testing.T) {
	dir := t.TempDir()
	for _, v := range []float64{math.NaN(), math.Inf(1)} {
		perceptron(t, filepath.Join(dir, "model.safetensors"), float32(v), nil)
		for _, path := range []string{dir, filepath.Join(dir, "model.safetensors")} {
			for _, command := range []string{"eval", "predict"} {
				stderr := refused(t, command, path, "--data", "mnist:"+smallDir(), "--json")
				require.Contains(t, stderr, `model.safetensors: tensor "layers.0.W" is not finite, first at element 0`)
			}
		}
	}
}

// Predict needs only images, and eval needs no training files.
func TestPredictWithoutLabels(t *testing.T) {
	weights := perceptron(t, filepath.Join(t.TempDir(), "w"), .01, nil)
	code, want, stderr := result("predict", weights, "--data", "mnist:"+smallDir())
	require.Zero(t, code, stderr)
	require.Equal(t, 300, strings.Count(want, "\n"))

	set, err := openSmall()
	require.NoError(t, err)
	dir := t.TempDir()
	images := filepath.Join(dir, "t10k-images-idx3-ubyte")
	require.NoError(t, data.WriteIDX(images, &data.IDX{Dims: []int{300, 14, 14}, Data: set.Test.Pixels}))
	for _, from := range []string{"mnist:" + dir, "idx:" + images} {
		code, got, stderr := result("predict", weights, "--data", from)
		require.Zero(t, code, stderr)
		require.Equal(t, want, got)
	}
	require.Contains(t, refused(t, "eval", weights, "--data", "mnist:"+dir), "no t10k-labels-idx1-ubyte")
	require.Contains(t, refused(t, "eval", weights, "--data", "idx:"+images), "has rows without labels; use")
	require.Contains(t, refused(t, "predict", weights, "--data", "mnist:"+images), "idx:"+images)
	require.Contains(t, refused(t, small(t, "--data", "idx:"+images)...), "works only with predict")

	labels := filepath.Join(dir, "t10k-labels-idx1-ubyte")
	require.NoError(t, data.WriteIDX(labels, &data.IDX{Dims: []int{300}, Data: set.Test.Labels}))
	code, _, stderr = result("eval", weights, "--data", "mnist:"+dir)
	require.Zero(t, code, stderr)
	require.Contains(t, refused(t, "predict", weights, "--data", "idx:"+labels), "images must have 3 dimensions")

	require.NoError(t, data.WriteIDX(images, &data.IDX{Dims: []int{300, 7, 28}, Data: set.Test.Pixels}))
	require.Contains(t, refused(t, "predict", weights, "--data", "idx:"+images), "is for images of 14x14, but those of")
}

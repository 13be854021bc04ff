package job

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// goldenFile has a line for each run of goldenTrainings: its name, the number of workers, and
// weights_sha256 after 20 steps. The first line names what multiplied matrices. Every processor
// and every build must have these bits. After a change on purpose,
//
//	UPDATE_BITS=1 go test ./trainer/job -run TestGoldenBits
//
// writes the file.
const goldenFile = "testdata/bits.txt"

// A goldenTraining is an example config with generated data.
type goldenTraining struct {
	name, config string
	most         int // workers; fewer train too
	set          func(t *testing.T, f *Spec)
}

var goldenTrainings = []goldenTraining{
	{"mnist", "mnist", 3, nil},
	{"convnet", "convnet", 3, nil},
	{"mnist-bf16", "mnist", 2, func(_ *testing.T, f *Spec) { f.Gradients.Compress = "bf16" }},
	{"mnist-int8", "mnist", 2, func(_ *testing.T, f *Spec) { f.Gradients.Compress = "int8" }},
	{"mnist-topk", "mnist", 2, func(_ *testing.T, f *Spec) { f.Gradients.Compress = "topk:0.05" }},
	{"classify", "classify", 2, func(t *testing.T, f *Spec) { f.Data, f.Options.Target = goldenTable(t), "kind" }},
	{"regression", "regression", 2, func(t *testing.T, f *Spec) { f.Data, f.Options.Target = goldenTable(t), "price" }},
	{"chars", "chars", 2, goldenText},
}

// train returns weights_sha256 after 20 steps.
func (g goldenTraining) train(t *testing.T, images string, workers, accumulate int) string {
	f := tinySpec(t)
	f.Config, f.Data = "../../examples/"+g.config+".cfg", "mnist:"+images
	f.Batch, f.Steps, f.Workers, f.Accumulate, f.Seed = 4, 20, workers, accumulate, 1
	if g.set != nil {
		g.set(t, &f)
	}
	return resultOf(t, run(t, f)).WeightsSHA256
}

func TestGoldenBits(t *testing.T) {
	t.Setenv(cpu.EnvOpenBLAS, "off")
	product := cpu.New(cpu.Options{}).BLAS()
	want, err := os.ReadFile(goldenFile)
	update := os.Getenv("UPDATE_BITS") != ""
	if !update {
		require.NoError(t, err)
	}
	images := t.TempDir()
	train, test := data.Generate(data.DigitsOptions{Train: 200, Test: 20})
	require.NoError(t, data.WriteMNIST(images, train, test))
	got := product + "\n"
	for _, g := range goldenTrainings {
		for workers := 1; workers <= g.most; workers++ {
			sum := g.train(t, images, workers, 1)
			got += fmt.Sprintln(g.name, workers, sum)
			if workers > 1 && !strings.Contains(g.name, "-") { // compression sees each worker's gradients
				require.Equal(t, sum, g.train(t, images, 1, workers), "%s: one worker that accumulates as many batches", g.name)
			}
		}
	}
	if update {
		require.NoError(t, os.WriteFile(goldenFile, []byte(got), 0o644))
		return
	}
	require.Equal(t, string(want), got, "these are the bits of this processor; if the change is on purpose, UPDATE_BITS=1")
}

// A goldenRandom is a sequence of numbers that is the same on every processor.
type goldenRandom uint32

func (r *goldenRandom) below(n int) int {
	*r = *r*1664525 + 1013904223
	return int(uint64(*r) * uint64(n) >> 32)
}

// goldenTable returns a CSV file whose kind and price follow from size and colour.
func goldenTable(t *testing.T) string {
	random := goldenRandom(1)
	var text strings.Builder
	text.WriteString("size,colour,weight,kind,price\n")
	for range 200 {
		size, colour, weight := random.below(400)-200, random.below(3), strconv.Itoa(random.below(99))
		if random.below(8) == 0 {
			weight = ""
		}
		kind := "mug"
		if size+100*colour > 100 {
			kind = "glass"
		}
		fmt.Fprintf(&text, "%d.%02d,%s,%s,%s,%d\n", size/100, max(size, -size)%100, []string{"red", "green", "blue"}[colour], weight, kind, 2000+3*size-500*colour+random.below(20))
	}
	return "csv:" + newFile(t, text.String())
}

// goldenText makes f that of a small language model.
func goldenText(t *testing.T, f *Spec) {
	random, text := goldenRandom(2), []byte("ab")
	for range 2000 {
		next := (int(text[len(text)-2]) + 2*int(text[len(text)-1])) % 6
		if random.below(10) == 0 {
			next = random.below(6)
		}
		text = append(text, "abcdef"[next])
	}
	f.Data = "text:" + newFile(t, string(text))
	for path, value := range map[string]string{
		"task.context": "8", "model.*.characters.nO": "16", "model.*.blocks.n": "1",
		"model.*.blocks.orig.*.attention.layer.*.heads.heads": "2",
		"model.*.blocks.orig.*.hidden.layer.layer.*.gelu.nO":  "64",
	} {
		f.Overrides = append(f.Overrides, config.Override{Path: path, Raw: value})
	}
}

// newFile returns the path of a new file with a text.
func newFile(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

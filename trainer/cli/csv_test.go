package cli_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// cups writes rows whose kind and price follow from their size and colour, some of them
// with gaps, and returns the path.
func cups(t *testing.T, rows int) string {
	r := rand.New(rand.NewPCG(1, uint64(rows)))
	var text strings.Builder
	text.WriteString("size,colour,weight,kind,price\n")
	for range rows {
		size, colour := r.NormFloat64(), r.IntN(3)
		kind := "mug"
		if size+float64(colour) > 1 {
			kind = "glass, tall"
		}
		weight := fmt.Sprintf("%.2f", r.NormFloat64())
		if r.IntN(8) == 0 {
			weight = ""
		}
		fmt.Fprintf(&text, "%.3f,%s,%s,%q,%.3f\n", size, []string{"red", "green", "blue"}[colour], weight, kind, 20+3*size-5*float64(colour)+r.NormFloat64()/10)
	}
	path := filepath.Join(t.TempDir(), "cups.csv")
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o600))
	return path
}

// columns are the example of each task on columns, and a target.
var columns = []struct{ example, target, first string }{
	{"classify.cfg", "kind", "accuracy"},
	{"regression.cfg", "price", "r2"},
}

// trainCSV returns the arguments of a run on a CSV file without the other target.
func trainCSV(example, path, target string, more ...string) []string {
	args := []string{"train", "../../examples/" + example, "--data", "csv:" + path, "--target", target, "--json", "--batch", "8", "--steps", "40", "--transport", "inproc"}
	return append(args, more...)
}

// metric returns a metric of the last evaluation.
func metric(t *testing.T, stdout, name string) float64 {
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	var result map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &result))
	value, ok := result[name].(float64)
	require.True(t, ok, "%s in %v", name, result)
	return value
}

// Four workers end with the bits of one that accumulates four micro-batches, also after a
// resume, and the trained weights predict rows without the training data.
func TestCSV(t *testing.T) {
	path := cups(t, 300)
	for _, c := range columns {
		t.Run(c.example, func(t *testing.T) {
			code, stdout, stderr := result(trainCSV(c.example, path, c.target, "--accumulate", "4")...)
			require.Zero(t, code, stderr)
			require.Greater(t, metric(t, stdout, c.first), .9)
			one := last(events(t, []byte(stdout)))
			require.Equal(t, one.Weights, last(train(t, trainCSV(c.example, path, c.target, "--workers", "4", "--transport", "auto")...)).Weights)

			dir := t.TempDir()
			args := trainCSV(c.example, path, c.target, "--workers", "4")
			code, _, stderr = result(append(args, "--steps", "17", "--out", dir)...)
			require.Zero(t, code, stderr)
			code, stdout, stderr = result(append(args, "--resume", dir)...)
			require.Zero(t, code, stderr)
			require.Empty(t, stderr)
			require.Equal(t, one.Weights, last(events(t, []byte(stdout))).Weights)

			code, all, stderr := result("eval", dir, "--data", "csv:"+path, "--json")
			require.Zero(t, code, stderr)
			require.Equal(t, "ringtrain: note: csv:"+path+" includes rows that the weights were trained on; leave out --data for those that train evaluated on\n", stderr)
			require.Greater(t, metric(t, all, c.first), .9)
			require.InDelta(t, 300, metric(t, all, "rows"), 0)
			code, held, stderr := result("eval", dir, "--json")
			require.Zero(t, code, stderr)
			require.Empty(t, stderr)
			require.InDelta(t, metric(t, stdout, c.first), metric(t, held, c.first), 1e-6)
			require.InDelta(t, 60, metric(t, held, "rows"), 0)
			_, held, _ = result("eval", dir)
			require.Contains(t, held, " on 60 rows of csv:"+path+" (held out)\n")
			_, held, _ = result("predict", dir)
			require.Equal(t, 60, strings.Count(held, "\n"))
		})
	}
}

// A config can name another loss. Four workers minimise it like one, and the weights say
// which it was.
func TestCSVLoss(t *testing.T) {
	path := cups(t, 300)
	for i, flags := range [][]string{
		{"--task.loss", `{"@losses": "CategoricalCrossentropy.v3", "label_smoothing": 0.1}`},
		{"--task.loss", `{"@losses": "HuberLoss.v1", "delta": 0.3}`},
	} {
		c := columns[i]
		usual := last(train(t, trainCSV(c.example, path, c.target, "--accumulate", "4")...))
		dir := t.TempDir()
		one := last(train(t, trainCSV(c.example, path, c.target, append(flags, "--accumulate", "4", "--out", dir)...)...))
		four := last(train(t, trainCSV(c.example, path, c.target, append(flags, "--workers", "4", "--transport", "auto")...)...))
		require.NotEqual(t, usual.Weights, one.Weights)
		require.Equal(t, one.Weights, four.Weights)
		code, stdout, stderr := result("eval", dir, "--data", "csv:"+path, "--json")
		require.Zero(t, code, stderr)
		require.Greater(t, metric(t, stdout, c.first), .9)
	}
}

// embedded is a network that embeds the colour of cups, and picks their numbers.
const embedded = `[training]
iterations = 40
batch_size = 8
[model]
@layers = "chain.v1"
[model.*.inputs]
@layers = "concatenate.v1"
[model.*.inputs.*.colour]
@layers = "Embed.v1"
column = 1
nO = 4
[model.*.inputs.*.numbers]
@layers = "Columns.v1"
columns = [0, 2]
[model.*.hidden]
@layers = "Relu.v1"
nO = 16
[model.*.last]
@layers = %q
[optimizer]
@optimizers = "Adam.v1"
learn_rate = 0.02
`

// A network can embed a column of categories and use others as they are: on any number of
// workers, and without the training data.
func TestEmbeddedColumns(t *testing.T) {
	path := cups(t, 300)
	for i, end := range []string{"Softmax.v1", "Linear.v1"} {
		cfg, dir, c := filepath.Join(t.TempDir(), "embedded.cfg"), t.TempDir(), columns[i]
		require.NoError(t, os.WriteFile(cfg, fmt.Appendf(nil, embedded, end), 0o600))
		args := trainCSV(c.example, path, c.target, "--accumulate", "2", "--out", dir)
		args[1] = cfg
		code, stdout, stderr := result(args...)
		require.Zero(t, code, stderr)
		require.Greater(t, metric(t, stdout, c.first), .9)
		one := last(events(t, []byte(stdout)))
		args = trainCSV(c.example, path, c.target, "--workers", "2", "--transport", "auto")
		args[1] = cfg
		require.Equal(t, one.Weights, last(train(t, args...)).Weights)
		code, held, stderr := result("eval", dir, "--json")
		require.Zero(t, code, stderr)
		require.InDelta(t, metric(t, stdout, c.first), metric(t, held, c.first), 1e-6)
	}
	cfg := filepath.Join(t.TempDir(), "embedded.cfg")
	require.NoError(t, os.WriteFile(cfg, fmt.Appendf(nil, embedded, "Softmax.v1"), 0o600))
	embed := func(more ...string) []string {
		args := trainCSV("classify.cfg", path, "kind", more...)
		args[1] = cfg
		return args
	}
	for want, flags := range map[string][]string{
		"model.*.inputs.*.colour.column: Embed.v1: column 0 has numbers, but Embed.v1 takes categories; pick numbers with Columns.v1": {"--model.*.inputs.*.colour.column", "0"},
		"model.*.inputs.*.colour.column: Embed.v1: column must be from 0 to 3, not 4":                                                 {"--model.*.inputs.*.colour.column", "4"},
		"column must be from 0 to 3, not -1":                                  {"--model.*.inputs.*.numbers.columns", "[-1]"},
		"columns: must be a list of whole numbers, not with the string \"a\"": {"--model.*.inputs.*.numbers.columns", `["a"]`},
		"nV must be 3, not 5, because column 1 has as many categories":        {"--model.*.inputs.*.colour.nV", "5"},
	} {
		require.Contains(t, refused(t, embed(flags...)...), want)
	}
	digits := []string{"train", cfg}
	require.Contains(t, refused(t, digits...), "column is 1, but rows of input have no columns; leave it out")
}

// The order of columns does not matter to a trained model, and the target may be missing.
func TestPredictCSV(t *testing.T) {
	path := cups(t, 300)
	bare, eval := filepath.Join(t.TempDir(), "bare.csv"), filepath.Join(t.TempDir(), "eval.csv")
	require.NoError(t, os.WriteFile(eval, []byte("weight,colour,size,kind,price\n1,blue,2,mug,3\n1,red,-3,bowl,4\n"), 0o600))
	require.NoError(t, os.WriteFile(bare, []byte("price;weight;colour;size\n10;;blue;2\n20;1;pink;-3\n"), 0o600))
	dir := t.TempDir()
	code, _, stderr := result(trainCSV("classify.cfg", path, "kind", "--out", dir)...)
	require.Zero(t, code, stderr)
	code, stdout, stderr := result("predict", dir, bare)
	require.Zero(t, code, stderr)
	lines := strings.Split(stdout, "\n")
	require.Len(t, lines, 3)
	require.True(t, strings.HasPrefix(lines[0], `0 "glass, tall" 0.`), stdout)
	require.True(t, strings.HasPrefix(lines[1], "1 mug "), stdout)
	const unknown = "ringtrain: warning: column \"colour\": 1 of 2 values did not occur in the training rows\n"
	require.Equal(t, unknown, stderr)
	code, all, stderr := result("predict", dir, "--data", "csv:"+bare)
	require.Zero(t, code)
	require.Equal(t, []string{stdout, unknown}, []string{all, stderr})
	code, _, stderr = result("eval", dir, "--data", "csv:"+bare)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, `has no column "kind", with which predictions are compared`)

	require.NoError(t, os.WriteFile(bare, []byte("weight,colour,size,kind\n1,blue,2,mug\n1,red,-3,mug\n"), 0o600))
	dir = t.TempDir()
	code, _, stderr = result(trainCSV("regression.cfg", path, "price", "--out", dir, "--steps", "200")...)
	require.Zero(t, code, stderr)
	code, stdout, stderr = result("predict", dir, bare, "--json")
	require.Zero(t, code, stderr)
	require.Empty(t, stderr, "all colours are known")
	code, _, stderr = result("eval", dir, "--data", "csv:"+eval)
	require.Zero(t, code)
	require.Equal(t, "ringtrain: warning: column \"kind\": 1 of 2 values did not occur in the training rows\n", stderr)
	for i, line := range strings.Split(strings.TrimSpace(stdout), "\n") {
		var p struct {
			Row   int
			Value float64
		}
		require.NoError(t, json.Unmarshal([]byte(line), &p))
		require.Equal(t, i, p.Row)
		require.InDelta(t, []float64{16, 11}[i], p.Value, 2.5)
	}
}

// Mistakes in a CSV file are one line and exit code 2, before workers start.
func TestBadCSV(t *testing.T) {
	good := cups(t, 40)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	classify, regress := "classify.cfg", "regression.cfg"
	for _, c := range []struct{ example, data, target, more, want string }{
		{classify, good, "knd", "", `--target knd: ` + good + ` has no such column; did you mean "kind"?`},
		{classify, good, "xyzzy", "", "has no such column; it has size, colour, weight, kind, price"},
		{regress, good, "kind", "", " is not a number, which a regression predicts"},
		{classify, filepath.Join(dir, "nosuch.csv"), "kind", "", "--data: cannot read the CSV file: open "},
		{classify, "", "kind", "", `--data: data "csv:" names no file; write csv:FILE`},
		{classify, file("header.csv", "a,b\n"), "b", "", "header.csv has no rows below its header"},
		{classify, file("empty.csv", ""), "b", "", "empty.csv is empty"},
		{classify, file("one.csv", "b\n1\n2\n"), "b", "", "has no other column to predict it from"},
		{classify, file("ragged.csv", "a,b\n1,x\n2\n"), "b", "", "ragged.csv:3: the line has 1 columns"},
		{classify, file("latin.csv", "a,b\n1,\xe9\n"), "b", "", "latin.csv:2: column 2 is not valid UTF-8"},
		{classify, file("same.csv", "a,b\n1,x\n2,x\n3,x\n"), "b", "", `same.csv:2: column "b": all rows have the class "x"`},
		{classify, file("gap.csv", "a,b\n1,x\n2,\n3,y\n"), "b", "", `gap.csv:3: column "b": the value to predict is missing`},
		{regress, file("constant.csv", "a,b\n1,3\n2,3\n3,3\n"), "b", "", `constant.csv:2: column "b": all training rows have the value 3`},
		{regress, file("nan.csv", "a,b\n1,3\n2,NaN\n3,4\n"), "b", "", `nan.csv:3: column "b": NaN is not a finite number`},
		{regress, file("inf.csv", "a,b\n1,3\nInf,2\n3,4\n"), "b", "--holdout 0.1", "--holdout 0.1 leaves none of the 3 rows of"},
		{regress, file("inf.csv", "a,b\n1,3\nInf,2\n3,4\n"), "b", "", `inf.csv:3: column "a": Inf is not a finite number`},
		{regress, file("few.csv", "a,b\n1,3\n2,4\n"), "b", "--holdout 0.9", "--holdout 0.9 leaves none of the 2 rows of"},
		{regress, good, "price", "--test-data " + file("other.csv", "size,colour,weight,kind,cost\n"), "--test-data " + filepath.Join(dir, "other.csv")},
		{regress, good, "price", "--test-data " + file("less.csv", "size,colour,weight,price\n1,red,1,1\n"), `less.csv: the file has no column "kind"; it has size, colour, weight, price; it must have the columns of `},
		{regress, good, "price", "--test-data " + file("text.csv", "size,colour,weight,kind,price\nlarge,red,1,mug,1\n"), `text.csv:2: column "size": "large" is not a number, as the column has in the training data`},
		{classify, good, "kind", "--test-data " + file("class.csv", "size,colour,weight,kind,price\n1,red,1,cup,1\n"), `class.csv:2: column "kind": "cup" is no class of the training data`},
		{regress, good, "price", "--test-data " + good + " --holdout 0.3", "--holdout cannot be combined with --test-data"},
		{classify, good, "kind", "--batch 99", "needs more rows than the data has (32): lower one of them"},
	} {
		args := trainCSV(c.example, c.data, c.target, "--batch", "1")
		code, stdout, stderr := result(append(args, strings.Fields(c.more)...)...)
		require.Equal(t, 2, code, "%s: %s", c.want, stderr)
		require.Contains(t, stderr, c.want)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
		require.Empty(t, stdout)
	}
	code, _, stderr := result("train", "../../examples/classify.cfg", "--data", "csv:"+good)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "--target is missing: name the column to predict; "+good+" has size, colour, weight, kind, price")
	code, _, stderr = result("train", "../../examples/classify.cfg")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, `the task classification.v1 needs rows with columns, as csv:FILE has; data "digits" has none`)
	code, _, stderr = result("train", "../../examples/mnist.cfg", "--data", "csv:"+good, "--target", "price")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, `this network predicts classes, but the task is regression.v1, because the column "price" has only numbers`)
}

// Weights are refused for rows that they do not fit, and so are damaged notes.
func TestWeightsForOtherColumns(t *testing.T) {
	path, dir := cups(t, 40), t.TempDir()
	code, _, stderr := result(trainCSV("classify.cfg", path, "kind", "--out", dir)...)
	require.Zero(t, code, stderr)
	other := filepath.Join(t.TempDir(), "other.csv")
	for header, want := range map[string]string{
		"size,colour,weight":             `is for the columns of its training data, but csv:` + other + ` has no column "price"`,
		"size,colour,wieght,price":       `has no column "weight"; did you mean "wieght"?`,
		"size,colour,weight,price,extra": `has another column, "extra"`,
	} {
		require.NoError(t, os.WriteFile(other, []byte(header+"\n"+strings.Repeat(",", strings.Count(header, ","))+"\n"), 0o600))
		require.Contains(t, refused(t, "predict", dir, "--data", "csv:"+other), want)
	}
	require.Contains(t, refused(t, "predict", dir, "--data", "mnist:"+smallDir()), "is for rows with columns, but mnist:")
	images := perceptron(t, filepath.Join(dir, "p"), 1, nil)
	require.Contains(t, refused(t, "predict", images, "--data", "csv:"+path), "is for images, but csv:"+path+" has none; use --data with the data it was trained on\n")
	require.Contains(t, refused(t, "predict", images, path), "is for images, but csv:"+path+" has none; give files like those it was trained on\n")
}

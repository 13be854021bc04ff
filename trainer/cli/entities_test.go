package cli_test

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sentences returns sentences as JSON lines. A name is a person after "met" and a place after
// "in", so words alone do not tell its label. prefix makes names that other prefixes lack.
func sentences(n int, seed uint64, prefix string) string {
	r := rand.New(rand.NewPCG(seed, 1))
	name := func() string {
		return prefix + strings.Repeat(string(rune('a'+r.IntN(20))), 1+r.IntN(3)) + string(rune('a'+r.IntN(20)))
	}
	var b strings.Builder
	for range n {
		text, entities := "Somebody", [][3]any{}
		add := func(words, label string) {
			text += " "
			lo := len(text)
			text += words
			if label != "" {
				entities = append(entities, [3]any{lo, len(text), label})
			}
		}
		for range 1 + r.IntN(4) {
			if r.IntN(2) == 0 {
				add("met", "")
				add(name()+" "+name(), "PER")
			} else {
				add("lived in", "")
				add(name(), "LOC")
			}
		}
		line, _ := json.Marshal(map[string]any{"text": text, "entities": entities})
		b.Write(append(line, '\n'))
	}
	return b.String()
}

// entityArgs writes a corpus and a config for it, and returns the arguments of a run.
func entityArgs(t *testing.T, docs int, more ...string) (dir string, args []string) {
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "train.jsonl"), []byte(sentences(docs, 1, "B")), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "dev.jsonl"), []byte(sentences(60, 2, "K")), 0o600))
	example, err := os.ReadFile("../../examples/ner.cfg")
	require.NoError(t, err)
	path := filepath.Join(dir, "ner.cfg")
	require.NoError(t, os.WriteFile(path, example, 0o600))
	return dir, append([]string{
		"train", path, "--data", "ner:" + dir, "--transport", "inproc", "--json", "--workers", "1", "--evaluation.frequency", "0",
		"--model.tok2vec.embed.width", "16", "--model.tok2vec.embed.rows", "[200, 100, 100, 100]", "--model.hidden_width", "16",
	}, more...)
}

// entityResult are the fields of the last event of a run on documents.
type entityResult struct {
	F       float64 `json:"ents_f"`
	P       float64 `json:"ents_p"`
	R       float64 `json:"ents_r"`
	Loss    float64
	Rows    int
	Weights string  `json:"weights_sha256"`
	People  float64 `json:"ents_f:PER"`
}

func entitiesOf(t *testing.T, args ...string) (r entityResult) {
	t.Helper()
	code, stdout, stderr := result(args...)
	require.Zero(t, code, stderr)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &r))
	return r
}

// Names that training never saw are found and told apart by their context. The weights alone
// are enough to evaluate and to predict.
func TestEntitiesAreLearned(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	dir, args := entityArgs(t, 400, "--steps", "120", "--optimizer.learn_rate", "0.01", "--out", out)
	got := entitiesOf(t, args...)
	require.Greater(t, got.F, .95)
	require.Greater(t, got.People, .9)
	evaluated := entitiesOf(t, "eval", out, "--json")
	require.Equal(t, []any{got.F, got.P, got.R, got.Loss, got.Weights}, []any{evaluated.F, evaluated.P, evaluated.R, evaluated.Loss, evaluated.Weights})
	screen := []string{"eval", out, "--data", "ner:" + filepath.Join(dir, "dev.jsonl")}
	code, stdout, stderr := result(screen...)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "ents_f ")
	require.NotContains(t, stdout, "ents_f:PER", "scores of labels are only in JSON")

	raw := filepath.Join(dir, "raw.txt")
	require.NoError(t, os.WriteFile(raw, []byte("Somebody met Kä Kaaab lived in Kccb"), 0o600))
	code, stdout, stderr = result("predict", out, raw, "--input-format", "ner", "--json")
	require.Zero(t, code, stderr)
	require.JSONEq(t, `{"row": 0, "text": "Somebody met Kä Kaaab lived in Kccb", "entities": [[13, 21, "PER"], [31, 35, "LOC"]]}`, stdout)
	code, stdout, stderr = result("predict", out, raw, "--input-format", "ner")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "Kä Kaaab (PER), Kccb (LOC)")
}

// Workers, and micro-batches in their place, have the same bits, with dropout, before and
// after a resume.
func TestEntitiesOfWorkersAndMicroBatches(t *testing.T) {
	_, args := entityArgs(t, 200, "--steps", "12", "--task.batcher.size.start", "30")
	whole := entitiesOf(t, append(args, "--workers", "4")...)
	require.Equal(t, whole.Weights, entitiesOf(t, append(args, "--accumulate", "4")...).Weights)
	require.NotEqual(t, whole.Weights, entitiesOf(t, args...).Weights)
	out := filepath.Join(t.TempDir(), "run")
	entitiesOf(t, append(args, "--workers", "4", "--steps", "7", "--out", out)...)
	require.Equal(t, whole, entitiesOf(t, append(args, "--workers", "4", "--resume", out)...))
}

// The batcher of a task decides how many documents form a batch. Only without one does
// training.batch_size need as many.
func TestBatcherOfFewDocuments(t *testing.T) {
	_, args := entityArgs(t, 20, "--steps", "2", "--training.batch_size", "21")
	require.NotEmpty(t, entitiesOf(t, args...).Weights)
	withoutBatcher(t, args[1])
	code, _, stderr := result(args...)
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "needs more rows than the data has (20)")
}

// withoutBatcher removes the batcher from a config that entityArgs wrote.
func withoutBatcher(t *testing.T, path string) {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, _, _ := strings.Cut(string(text), "[task.batcher]")
	_, after, _ := strings.Cut(string(text), "[training]")
	require.NoError(t, os.WriteFile(path, []byte(before+"[training]"+after), 0o600))
}

// Evaluations have spaCy's losses, of all workers and of the steps since the last evaluation.
func TestEntityLosses(t *testing.T) {
	_, args := entityArgs(t, 100, "--steps", "9", "--evaluation.frequency", "3", "--batch", "20")
	withoutBatcher(t, args[1]) // batches of --batch documents
	type losses struct {
		Event       string
		Step, Epoch int
		Vectors     float64 `json:"loss_tok2vec"`
		Scores      float64 `json:"loss_ner"`
	}
	read := func(more ...string) (all []losses) {
		code, stdout, stderr := result(append(args, more...)...)
		require.Zero(t, code, stderr)
		for line := range strings.Lines(stdout) {
			var one losses
			require.NoError(t, json.Unmarshal([]byte(line), &one))
			if one.Event == "eval" {
				all = append(all, one)
			}
		}
		return all
	}
	each := read("--evaluation.frequency", "1")
	require.Len(t, each, 9)
	require.Zero(t, each[0].Vectors, "the upper layer begins with zeros")
	whole := read()
	require.Len(t, whole, 3)
	for i, e := range whole {
		require.Equal(t, (3*i+2)/5, e.Epoch, "an epoch has 5 steps")
		sum := losses{}
		for _, one := range each[3*i:][:3] {
			sum.Vectors, sum.Scores = sum.Vectors+one.Vectors, sum.Scores+one.Scores
		}
		require.Positive(t, sum.Vectors)
		require.InEpsilon(t, sum.Vectors, e.Vectors, 1e-9)
		require.InEpsilon(t, sum.Scores, e.Scores, 1e-9)
	}
	for _, more := range [][]string{{"--workers", "2", "--batch", "10"}, {"--accumulate", "2", "--batch", "10"}} {
		for i, e := range read(more...) {
			require.InEpsilon(t, whole[i].Scores, e.Scores, .01, "%v", more)
		}
	}
	code, stdout, stderr := result(append(slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == "--json" }), "--log-style", "spacy")...)
	require.Zero(t, code, stderr)
	lines := strings.Split(stdout, "\n")
	require.Equal(t, "E    #       LOSS TOK2VEC  LOSS NER  ENTS_F  ENTS_P  ENTS_R  SCORE ", lines[0])
	require.Regexp(t, `^  0       0          0.00 +\d+\.\d\d +\d+\.\d\d +\d+\.\d\d +\d+\.\d\d    [01]\.\d\d$`, lines[2])
	require.Regexp(t, `^  1       6 `, lines[4])
	require.Regexp(t, `^  1       8 `, lines[5])
}

func TestEntityMistakes(t *testing.T) {
	_, args := entityArgs(t, 20)
	for want, more := range map[string][]string{
		`state_type: must be "ner", not "parser"`:  {"--model.state_type", `"parser"`},
		"maxout_pieces: must be from 1 to 4":       {"--model.maxout_pieces", "9"},
		"nO: must be null, not 18":                 {"--model.nO", "18"},
		"size: must be at least 1, not 0":          {"--task.batcher.size.start", "0"},
		"tolerance: must be at least 0, not -1":    {"--task.batcher.tolerance", "-1"},
		"cut_size: must be from 1 to":              {"--task.update_with_oracle_cut_size", "0"},
		"dropout: must be at least 0":              {"--task.dropout", "1.5"},
		"needs documents, but data \"digits\" has": {"--data", "digits"},
	} {
		code, _, stderr := result(append(args, more...)...)
		require.Equal(t, 2, code)
		require.Contains(t, stderr, want)
	}
}

package cli_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// letters are the characters of markovText, and alphabet is their number.
const (
	letters  = "abdeoé"
	alphabet = 6
)

// markovText returns a text of n characters. Each follows from the two before it, except
// once in ten times, when it is drawn at random. One of the two alone says nothing.
func markovText(n int) string {
	r := rand.New(rand.NewPCG(3, 1))
	chars, before, last := []rune(letters), 0, 1
	var b strings.Builder
	for range n {
		next := (before + 2*last + 1) % alphabet
		if r.IntN(10) == 0 {
			next = r.IntN(alphabet)
		}
		before, last = last, next
		b.WriteRune(chars[next])
	}
	return b.String()
}

// bits returns the bits per character of a test text for a model of single characters and
// one of pairs, estimated from a training text.
func bits(train, test string) (unigram, bigram float64) {
	count := map[string]float64{}
	previous := rune(0)
	for _, c := range train {
		count[""]++
		count[string(c)]++
		count[string([]rune{previous, c})]++
		previous = c
	}
	n := 0.
	for _, c := range test {
		unigram -= math.Log2((count[string(c)] + 1) / (count[""] + alphabet))
		bigram -= math.Log2((count[string([]rune{previous, c})] + 1) / (count[string(previous)] + alphabet))
		n, previous = n+1, c
	}
	return unigram / n, bigram / n
}

// charsConfig writes a text and a config for it, and returns the arguments of a run
// with 50 steps an epoch.
func charsConfig(t *testing.T, text string, more ...string) []string {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "text"), []byte(text), 0o600))
	example, err := os.ReadFile("../../examples/chars.cfg")
	require.NoError(t, err)
	path := filepath.Join(dir, "chars.cfg")
	require.NoError(t, os.WriteFile(path, example, 0o600))
	return append([]string{
		"train", path, "--data", "text:" + filepath.Join(dir, "text"), "--transport", "inproc", "--json",
		"--task.context", "8", "--model.*.characters.nO", "16", "--model.*.blocks.n", "1", "--model.*.blocks.orig.*.attention.layer.*.heads.heads", "2",
		"--model.*.blocks.orig.*.hidden.layer.layer.*.gelu.nO", "64", "--batch", "8", "--workers", "1",
	}, more...)
}

// charsResult are the fields of the last event of a run on text.
type charsResult struct {
	Bits     float64 `json:"bits_per_character"`
	Accuracy float64
	Loss     float64
	Rows     int
	Rate     float64 `json:"samples_per_second"`
	Weights  string  `json:"weights_sha256"`
}

func charsOf(t *testing.T, args ...string) (r charsResult) {
	t.Helper()
	code, stdout, stderr := result(args...)
	require.Zero(t, code, stderr)
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &r))
	return r
}

// A model of characters learns what pairs of them cannot tell.
func TestCharsLearnContext(t *testing.T) {
	text := markovText(40_000)
	chars := []rune(text)
	unigram, bigram := bits(string(chars[:36_000]), string(chars[36_000:]))
	require.InDelta(t, math.Log2(alphabet), unigram, .1)
	got := charsOf(t, charsConfig(t, text, "--steps", "400", "--optimizer.learn_rate", "0.01")...)
	t.Logf("bits per character: %.3f of the model, %.3f of pairs, %.3f of single characters", got.Bits, bigram, unigram)
	require.Less(t, got.Bits, bigram-.5)
	require.InDelta(t, got.Loss/math.Ln2, got.Bits, 1e-4, "the loss is in nats")
}

// Workers, and micro-batches in their place, have the same bits, before and after a
// resume. The weights alone are enough to measure and to continue texts.
func TestCharsTrain(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	args := charsConfig(t, markovText(3000), "--steps", "30")
	text := strings.TrimPrefix(args[3], "text:")
	whole := charsOf(t, append(args, "--workers", "4")...)
	require.Equal(t, 4*8*8, only(train(t, append(args, "--workers", "4", "--steps", "1")...), "step")[0].Samples, "characters")
	require.Equal(t, whole.Weights, charsOf(t, append(args, "--accumulate", "4")...).Weights)
	require.NotEqual(t, whole.Weights, charsOf(t, args...).Weights)
	charsOf(t, append(args, "--workers", "4", "--steps", "17", "--out", out)...)
	resumed := charsOf(t, append(args, "--workers", "4", "--resume", out)...)
	require.Equal(t, []any{whole.Weights, whole.Bits, whole.Accuracy}, []any{resumed.Weights, resumed.Bits, resumed.Accuracy})

	held := filepath.Join(t.TempDir(), "held")
	chars, err := os.ReadFile(text)
	require.NoError(t, err)
	tail := string([]rune(string(chars))[2700:])
	require.NoError(t, os.WriteFile(held, []byte(tail), 0o600))
	unnamed := charsOf(t, "eval", out, "--json")
	require.InDelta(t, whole.Bits, unnamed.Bits, 1e-4, "the held-out part is found again")
	require.NoError(t, os.Remove(text))
	measured := charsOf(t, "eval", out, "--data", "text:"+held, "--json")
	require.InDelta(t, whole.Bits, measured.Bits, 1e-4, "the test part is the last tenth")
	require.Equal(t, 296, measured.Rows, "37 rows of 8 of the 299 characters after the first")

	sample := func(more ...string) string {
		code, stdout, stderr := result(append([]string{"sample", out, "--prompt", "aé", "--length", "40"}, more...)...)
		require.Zero(t, code, stderr)
		require.Regexp(t, "^aé["+letters+"]{40}\n$", stdout)
		return stdout
	}
	one := sample("--seed", "1")
	require.Equal(t, one, sample("--seed", "1"))
	require.NotEqual(t, one, sample("--seed", "2"))
	require.Equal(t, sample("--temperature", "0"), sample("--top-k", "1", "--seed", "5"))

	code, stdout, stderr := result("predict", out, "--data", "text:"+held, "--json")
	require.Zero(t, code, stderr)
	files := []string{"predict", out, held, "--input-format", "text", "--json"}
	code, same, stderr := result(files...)
	require.Zero(t, code, stderr)
	require.Equal(t, stdout, same)
	position, loss := 0, 0.
	for line := range strings.Lines(stdout) {
		var row struct {
			Position    int
			Character   string
			Probability float64
			Predicted   string
		}
		require.NoError(t, json.Unmarshal([]byte(line), &row))
		position++
		require.Equal(t, position, row.Position)
		require.Equal(t, string([]rune(tail)[position]), row.Character)
		require.Equal(t, 1, utf8.RuneCountInString(row.Predicted))
		if position <= measured.Rows {
			loss -= math.Log2(row.Probability)
		}
	}
	require.Equal(t, 299, position)
	require.InDelta(t, measured.Bits, loss/296, 1e-4)
}

// The characters of the test part that the training part lacks are one class, which the
// model can only get wrong.
func TestUnknownCharacters(t *testing.T) {
	text := markovText(1000)
	args := charsConfig(t, text+strings.Repeat("ЖЯ", 60), "--steps", "30")
	unknown := charsOf(t, append(args, "--holdout", "0.1")...)
	require.Zero(t, unknown.Accuracy)
	require.Greater(t, unknown.Bits, 1.2*math.Log2(alphabet))
	require.Positive(t, charsOf(t, append(args, "--holdout", "0.5")...).Accuracy)
	out := filepath.Join(t.TempDir(), "run")
	charsOf(t, append(args, "--holdout", "0.2", "--out", out)...)
	code, stdout, stderr := result("sample", out, "--prompt", "aЖaЯЖ")
	require.Equal(t, 2, code)
	require.Empty(t, stdout)
	require.Equal(t, "ringtrain: --prompt: the text that the model was trained on has no 'Ж', 'Я'; leave out such characters\n", stderr)
	_, _, stderr = result("sample", out, "--prompt", "--a.a")
	require.Contains(t, stderr, "--prompt: the text that the model was trained on has no '-', '.'", "it is a value, not an override")
	require.NoError(t, os.WriteFile(filepath.Join(out, "foreign"), []byte(strings.Repeat("Ж", 50)), 0o600))
	code, _, stderr = result("eval", out, "--data", "text:"+filepath.Join(out, "foreign"))
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "knows none of the characters of")
}

// Shells complete the kinds of data of the catalog.
func TestDataCompletes(t *testing.T) {
	for _, command := range []string{"train", "eval", "predict"} {
		code, stdout, stderr := result("__complete", command, "x", "--data", "")
		require.Zero(t, code, stderr)
		require.Contains(t, strings.Fields(stdout), "text:", command)
	}
}

func TestCharsMistakes(t *testing.T) {
	text := markovText(300)
	invalid := text[:100] + "\xff" + text[100:]
	for want, c := range map[string]struct {
		text string
		more []string
	}{
		": not UTF-8: the byte at offset 100 is not part of a character": {invalid, nil},
		"is empty":                        {"", nil},
		"the training part of":            {text, []string{"--task.context", "270"}},
		"the test part of":                {text, []string{"--task.context", "30"}},
		"task.context: must be from 1 to": {text, []string{"--task.context", "0"}},
		"--holdout must be greater than 0 and less than 1":                    {text, []string{"--holdout", "1"}},
		"--holdout 0.001 leaves none of the 300 characters of":                {text, []string{"--holdout", "0.001"}},
		"needs more rows than the data has (33)":                              {text, []string{"--batch", "34"}},
		"must be at least 1 and divide the width, not 3; rows of shape":       {text, []string{"--model.*.blocks.orig.*.attention.layer.*.heads.heads", "3"}},
		"the task language_model.v1 needs text, but data \"digits\" has none": {text, []string{"--data", "digits"}},
		"--test-data: open nosuch":                                            {text, []string{"--test-data", "nosuch"}},
	} {
		code, stdout, stderr := result(charsConfig(t, c.text, c.more...)...)
		require.Equal(t, 2, code, "%s: %s", want, stderr)
		require.Empty(t, stdout, "%s", want)
		require.Contains(t, stderr, want)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
	}
}

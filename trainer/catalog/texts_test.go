package catalog

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/text"
)

// Texts that do not fit into the header of a file of weights are refused before training.
func TestTooMuchText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	var b strings.Builder
	b.WriteString("short,long,y\n")
	for i := range 24 {
		b.WriteString("a,")
		b.WriteString(strings.Repeat(string(rune('a'+i)), 1<<20))
		b.WriteString(",1\nb,x,2\n")
	}
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
	rows, err := csvRows(path, Options{Target: "y", Holdout: .1})
	require.NoError(t, err)
	for _, task := range []Task{tableClassification{}, tableRegression{}} {
		_, err = task.Fit(rows, nil)
		require.ErrorContains(t, err, path+": the different texts of its columns take ")
		require.ErrorContains(t, err, ` MB, more than the limit of 12 MB; remove columns of free text, such as "long"`)
	}
	rows, err = csvRows(path, Options{Target: "long", Holdout: .1})
	require.NoError(t, err)
	_, err = tableClassification{}.Fit(rows, nil)
	require.ErrorContains(t, err, `such as "long"`, "classes count too")
}

// A predicted document can be read again as a corpus, whatever its words are.
func TestPredictedTokens(t *testing.T) {
	d := &text.Doc{Words: []string{"Kiev", "-", "based"}, Spaces: []bool{false, false, false}}
	found := []text.Span{{Start: 0, End: 1, Label: "LOC"}}
	line, err := entitiesOf(0, d, found).MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, `{"row": 0, "text": "Kiev-based", "entities": [[0, 4, "LOC"]],
		"tokens": [{"start": 0, "end": 4}, {"start": 4, "end": 5}, {"start": 5, "end": 10}]}`, string(line))
	again := text.Tokenize("Kiev is")
	line, err = entitiesOf(0, again, nil).MarshalJSON()
	require.NoError(t, err)
	require.NotContains(t, string(line), "tokens")
}

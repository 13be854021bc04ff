package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/data"
)

// Every example is a config that train accepts and that trains.
func TestExampleConfigs(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	train, test := data.Generate(data.DigitsOptions{Train: 300, Test: 50, Side: 28})
	require.NoError(t, data.WriteMNIST(dir, train, test))
	write("dev.iob", "Rome|I-LOC\n")
	other := map[string][]string{
		"chars.cfg":      {"--data", "text:" + write("a.txt", strings.Repeat("a line of text\n", 400))},
		"classify.cfg":   {"--data", "csv:" + write("classes.csv", "x,class\n"+strings.Repeat("1,a\n2,b\n", 20)), "--target", "class"},
		"ner.cfg":        {"--data", "ner:" + filepath.Dir(write("train.iob", strings.Repeat("Rome|I-LOC is|O here|O\n", 20)))},
		"regression.cfg": {"--data", "csv:" + write("values.csv", "x,y\n"+strings.Repeat("1,2.5\n2,4.5\n", 20)), "--target", "y"},
	}
	paths, err := filepath.Glob("../../examples/*.cfg")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		source, ok := other[filepath.Base(path)]
		if !ok {
			source = []string{"--data", "mnist:" + dir}
		}
		code, stdout, stderr := result(append([]string{"config", "check", path}, source...)...)
		require.Zero(t, code, "%s: %s%s", path, stdout, stderr)
		args := append([]string{"train", path, "--transport", "inproc", "--workers", "1", "--batch", "4", "--steps", "2", "--evaluation.frequency", "0"}, source...)
		code, stdout, stderr = result(args...)
		require.Zero(t, code, "%s: %s%s", path, stdout, stderr)
		require.Contains(t, stdout, "after 2 steps", path)
	}
}

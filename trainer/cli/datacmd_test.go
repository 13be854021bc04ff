package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// data ner writes the same files again for the same seed.
func TestDataNER(t *testing.T) {
	write := func(args ...string) (dir, stdout string) {
		dir = filepath.Join(t.TempDir(), "new")
		code, stdout, stderr := result(append([]string{"data", "ner", dir}, args...)...)
		require.Equal(t, 0, code, stderr)
		require.Empty(t, stderr)
		return dir, stdout
	}
	file := func(dir, name string) string {
		content, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		return string(content)
	}
	a, stdout := write("--sentences", "10", "--seed", "3")
	require.Equal(t, a+": 10 training and 3 dev sentences as iob\n", stdout)
	b, _ := write("--sentences", "10", "--seed", "3")
	c, _ := write("--sentences", "10", "--seed", "4")
	d, _ := write("--sentences", "10", "--format", "jsonl")
	for _, part := range []string{"train", "dev"} {
		require.Equal(t, file(a, part+".iob"), file(b, part+".iob"))
		require.NotEqual(t, file(a, part+".iob"), file(c, part+".iob"))
		require.Contains(t, file(d, part+".jsonl"), `{"text":"`)
	}
}

// The commands do not replace the rows of others, unless told to.
func TestDataKeepsOtherFiles(t *testing.T) {
	for _, args := range [][]string{{"data", "digits", "DIR", "--train", "20", "--test", "4"}, {"data", "ner", "DIR", "--sentences", "10"}} {
		args[2] = filepath.Join(t.TempDir(), "new")
		for range 2 { // the same files again
			code, _, stderr := result(args...)
			require.Zero(t, code, stderr)
		}
		code, stdout, stderr := result(append(args, "--seed", "1")...)
		require.Equal(t, 2, code)
		require.Empty(t, stdout)
		require.Regexp(t, `^ringtrain: \S+ exists with other content: write to another directory, or add --force to replace it\n$`, stderr)
		code, _, stderr = result(append(args, "--seed", "1", "--force")...)
		require.Zero(t, code, stderr)
		code, _, _ = result(args...)
		require.Equal(t, 2, code, "they have been replaced")
	}
}

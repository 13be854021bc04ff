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

package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A ~ that the shell left is no directory.
func TestTilde(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{{"--out=~/run"}, {"--out", "~/run"}} {
		require.Equal(t, "ringtrain: --out ~/run: the shell did not replace ~ by your home directory; write --out \"$HOME/run\"\n",
			refused(t, append([]string{"train", "mnist.cfg"}, args...)...))
	}
	require.Contains(t, refused(t, "tune", "--out=~"), `write --out "$HOME"`)
	require.NoDirExists(t, "~")
	for _, args := range [][]string{{"--out=./~/run"}, {"--out", "a~/run"}, {"--steps=1", "~/run"}} {
		require.NotContains(t, refused(t, append([]string{"train", "nosuch.cfg"}, args...)...), "shell")
	}
}

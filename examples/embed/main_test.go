package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/data"
)

// asCommand makes the test binary the example, and its workers, too.
const asCommand = "RINGTRAIN_TEST_EMBED"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// embed is the example as a process, in the directory that it is meant to be run in.
func embed(t *testing.T, dir string, args ...string) *exec.Cmd {
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), asCommand+"=1", "XDG_RUNTIME_DIR="+t.TempDir(), data.EnvCache+"="+t.TempDir())
	return cmd
}

// Three workers of a program that is not ours train one model, and the program hears
// of every evaluation.
func TestEmbed(t *testing.T) {
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	out, err := embed(t, root).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Regexp(t, regexp.MustCompile(`(?s)step 10: accuracy 0\.\d{3}\n.*step 20: accuracy 0\.\d{3}\n3 workers trained 20 steps: weights [0-9a-f]{64}\n$`), string(out))
}

// A mistake is one line, and the program fails.
func TestEmbedWithoutConfig(t *testing.T) {
	out, err := embed(t, t.TempDir()).CombinedOutput()
	require.Error(t, err)
	require.Regexp(t, `^[^\n]*examples/mnist.cfg[^\n]*\n$`, string(out))
}

// --help does not start a training.
func TestEmbedHelp(t *testing.T) {
	out, err := embed(t, t.TempDir(), "--help").CombinedOutput()
	require.NoError(t, err)
	require.Regexp(t, `^Usage: go run ./examples/embed\n`, string(out))
	cmd := embed(t, t.TempDir(), "examples/mnist.cfg")
	out, err = cmd.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 2, cmd.ProcessState.ExitCode())
	require.Regexp(t, `^Usage: go run ./examples/embed\n`, string(out))
}

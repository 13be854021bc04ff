package emulator

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// kept is a directory for the emulator that outlives a test.
func kept() string { return filepath.Join(os.TempDir(), "ringtrain-emulator") }

// mutant is the environment variable that selects another emulator to test. It has the lines that
// Build returns.
const mutant = "RINGTRAIN_EMULATOR_MUTANT"

// stand returns the emulator's environment, or skips the test.
func stand(t *testing.T) []string {
	t.Helper()
	if others := os.Getenv(mutant); others != "" {
		return strings.Split(others, "\n")
	}
	env, err := Build(t.Context(), kept())
	if errors.Is(err, ErrNoCompiler) {
		t.Skip(err)
	}
	require.NoError(t, err)
	return env
}

func TestBuildNamesEveryLibrary(t *testing.T) {
	env := stand(t)
	var named []library
	for _, l := range libraries {
		if l.variable != "" {
			named = append(named, l)
		}
	}
	require.Len(t, env, len(named))
	for i, l := range named {
		name, path, ok := strings.Cut(env[i], "=")
		require.True(t, ok)
		require.Equal(t, l.variable, name)
		require.FileExists(t, path)
	}
	again, err := Build(t.Context(), kept())
	require.NoError(t, err)
	require.Equal(t, env, again)
}

func TestBuildWithoutCompiler(t *testing.T) {
	t.Setenv("CXX", filepath.Join(t.TempDir(), "none"))
	_, err := Build(t.Context(), t.TempDir())
	require.ErrorIs(t, err, ErrNoCompiler)
}

// If compiling fails, no files remain, and the error has the reason.
func TestBuildReportsTheCompiler(t *testing.T) {
	stand(t)
	dir := t.TempDir()
	_, err := build(t.Context(), dir, altered(t, "segment.cpp", "Segment* attach(", "Segment* attach)"), libraries[3:4])
	require.ErrorContains(t, err, "segment.cpp")
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// The emulator has every function of the driver that package cuda calls.
func TestDriverHasItsSymbols(t *testing.T) {
	env := stand(t)
	text, err := os.ReadFile("../symbols.txt")
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("no ../symbols.txt: the package is alone")
	}
	require.NoError(t, err)
	nm, err := exec.LookPath("nm")
	if err != nil {
		t.Skip("no nm: ", err)
	}
	_, path, _ := strings.Cut(env[0], "=")
	out, err := exec.CommandContext(t.Context(), nm, "-D", "--defined-only", path).Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) >= 2 && (f[0] == "own" || f[0] == "cu") {
			require.Contains(t, string(out), " T "+f[1]+"\n")
		}
	}
}

// altered returns the sources with some passages of one file replaced. Each passage must occur
// exactly once.
func altered(t *testing.T, file string, replacements ...string) fs.FS {
	t.Helper()
	all := fstest.MapFS{}
	text, err := fs.Sub(source, "src")
	require.NoError(t, err)
	require.NoError(t, fs.WalkDir(text, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(text, path)
		if path == file {
			for i := 0; i < len(replacements); i += 2 {
				require.Equal(t, 1, strings.Count(string(content), replacements[i]), "%s in %s", replacements[i], file)
			}
			content = []byte(strings.NewReplacer(replacements...).Replace(string(content)))
		}
		all[path] = &fstest.MapFile{Data: content}
		return err
	}))
	return all
}

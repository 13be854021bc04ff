package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/trainer/store"
)

// asCommand makes the test binary the example, and its trainers, too.
const asCommand = "RINGTRAIN_TEST_ACTORS"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// actors runs the example, and returns what it prints and how long the trainers took.
func actors(t *testing.T, args ...string) (lines []string, seconds float64) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	lines = strings.Split(strings.TrimSpace(string(out)), "\n")
	var n int
	_, err = fmt.Sscanf(lines[0], "%d trainers: %f s", &n, &seconds)
	require.NoError(t, err, lines[0])
	return lines[1:], seconds
}

// values returns the parameters in a directory, by key.
func values(t *testing.T, dir string) map[string][]float64 {
	t.Helper()
	db, err := store.Open(dir, store.Options{})
	require.NoError(t, err)
	defer db.Close()
	keys, err := db.Keys(t.Context(), "")
	require.NoError(t, err)
	all := map[string][]float64{}
	for _, key := range keys {
		v, _, err := db.Get(t.Context(), key)
		require.NoError(t, err)
		all[key], err = store.Floats[float64](v)
		require.NoError(t, err)
	}
	return all
}

// Trainers run at the same time. A second run resumes where the first ended, and the parts
// are joined. Local trainers do the same, one after the other.
func TestActors(t *testing.T) {
	dir, local := t.TempDir(), t.TempDir()
	short := []string{"--trainers", "5", "--parameters", "7", "--iterations", "15", "--pause", "20ms"}
	want := func(version int) (lines []string) {
		for i := range 5 {
			lines = append(lines, fmt.Sprintf("trainer%d: float64 [7], version %d", i, version))
		}
		return append(lines, "model: float64 [35]")
	}
	lines, _ := actors(t, append(short, "--dir", dir)...)
	require.Equal(t, want(1), lines)
	first := values(t, dir)
	require.Len(t, first["model"], 35)
	require.Equal(t, first["trainer1"], first["model"][7:14])
	require.NotEqual(t, first["trainer1"], first["trainer2"])
	lines, _ = actors(t, append(short, "--dir", dir)...)
	require.Equal(t, want(2), lines)
	second := values(t, dir)
	for i, x := range second["model"] {
		require.InDelta(t, first["model"][i], x, 15*.1, "15 more updates of at most 0.1")
		require.NotEqual(t, first["model"][i], x)
	}

	lines, seconds := actors(t, append(short, "--dir", local, "--local")...)
	require.Equal(t, want(1), lines)
	require.GreaterOrEqual(t, seconds, 5*15*.02)
	require.Equal(t, first, values(t, local), "it makes no difference where the store is")
}

// As documented: five trainers take at most 1.1 times what one takes.
func TestFullRun(t *testing.T) {
	collectivetest.Slow(t)
	dir := t.TempDir()
	begin := time.Now()
	_, one := actors(t, "--dir", t.TempDir(), "--local", "--trainers", "1")
	require.InDelta(t, time.Since(begin).Seconds(), one, 2)
	lines, five := actors(t, "--dir", dir)
	require.Contains(t, lines, "model: float64 [500]")
	t.Logf("one trainer %.2f s, five %.2f s", one, five)
	require.LessOrEqual(t, five, 1.1*one)
}

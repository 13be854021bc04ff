package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// An empty value, probably of an unset variable, is refused before anything starts, by every
// command.
func TestEmptyValues(t *testing.T) {
	for _, c := range []struct {
		args  []string
		flags []string
	}{
		{[]string{"train", config(t)}, []string{"servers", "device", "nccl", "order"}},
		{[]string{"bench", "collective"}, []string{"device", "nccl", "order", "tune"}},
		{[]string{"tune"}, []string{"order"}},
		{[]string{"members"}, []string{"cluster", "key-file"}},
		{[]string{"status"}, []string{"cluster", "key-file"}},
		{[]string{"eval", "run"}, []string{"data"}},
		{[]string{"predict", "run", "file"}, []string{"input-format"}},
	} {
		for _, flag := range c.flags {
			require.Contains(t, refused(t, append(c.args, "--"+flag, "")...), "ringtrain: --"+flag+" is empty: ", "%v", c.args)
		}
	}
}

// What workers or ranks would refuse is refused before they start.
func TestRefusedBeforeWorkersStart(t *testing.T) {
	require.Equal(t, "ringtrain: --tune: cannot read the table: open nosuch: no such file or directory; make one with ringtrain tune, or use --tune off\n",
		refused(t, "bench", "collective", "--tune", "nosuch"))
	t.Setenv("RINGTRAIN_CALIBRATION", "bogus")
	for _, args := range [][]string{{"train", config(t)}, {"tune"}, {"bench", "collective"}, {"bench", "scaling"}} {
		require.Equal(t, "ringtrain: RINGTRAIN_CALIBRATION: \"bogus\" is neither auto, off, refine nor a choice such as chunk=64K\n", refused(t, args...))
	}
}

func TestMistypedTimes(t *testing.T) {
	for flag, args := range map[string][]string{
		"timeout":           {"members"},
		"join-timeout":      {"train", config(t)},
		"straggler-timeout": {"train", config(t)},
		"latency":           {"simulate"},
	} {
		for _, value := range []string{"5", "soon", ""} {
			require.Equal(t, "ringtrain: --"+flag+" must be a time such as 5s, not \""+value+"\"\n", refused(t, append(args, "--"+flag, value)...))
		}
	}
}

// Flags of other programs, and of other commands, lead to ours.
func TestFlagsOfOtherPrograms(t *testing.T) {
	for flag, other := range map[string]string{"--nproc-per-node": "--workers", "--nproc_per_node": "--workers", "-n": "--workers", "-np": "--workers", "--epochs": "--steps", "--output": "--out"} {
		require.Equal(t, "ringtrain: unknown flag: "+flag+"; did you mean "+other+"?\n", refused(t, "train", config(t), flag, "2"))
	}
	require.Contains(t, refused(t, "bench", "collective", "--nproc-per-node", "2"), "did you mean --ranks?")
	require.Contains(t, refused(t, "version", "-n", "2"), "--help lists the flags")
}

func TestBucketTakesSizes(t *testing.T) {
	for _, text := range []string{"1M", "64k", "1048576"} {
		require.Contains(t, refused(t, "train", "nosuch.cfg", "--bucket", text), "nosuch.cfg")
	}
	for _, text := range []string{"1X", "-1", "M"} {
		require.Equal(t, "ringtrain: --bucket must be a number of bytes, or one with K, M or G, not \""+text+"\"\n", refused(t, "train", config(t), "--bucket", text))
	}
	require.Contains(t, refused(t, "train", config(t), "--bucket", "0"), "--bucket must be at least 1 byte, not 0")
}

// A flag that takes the name of a file does not take the next flag for it.
func TestFlagsForFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	require.Equal(t, "ringtrain: --json must be the name of a FILE, not \"--csv\"; if that is its name, write ./--csv\n", refused(t, "bench", "collective", "--json", "--csv"))
	require.Equal(t, "ringtrain: --out must be the name of a DIR, not \"--workers=2\"; if that is its name, write ./--workers=2\n", refused(t, "train", config(t), "--out", "--workers=2"))
	require.Contains(t, refused(t, "tune", "--out", "--workers=2"), "--out must be the name of a FILE")
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Empty(t, left)
	require.NotContains(t, refused(t, "train", "nosuch.cfg", "--out", filepath.Join(".", "-x")), "--out")
}

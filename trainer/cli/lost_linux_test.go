package cli_test

import (
	"bufio"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/secret"
)

var lostLine = regexp.MustCompile(`(?m)^ranks (.*) lost rank (\d) \(`)

// loseOne runs a measurement with 8 ranks, sends one worker a signal, and requires that
// each of the others soon names it.
func loseOne(t *testing.T, victim int, sig syscall.Signal, most time.Duration, more ...string) {
	args := append([]string{"bench", "collective", "--ranks", "8", "-b", "1M", "-e", "1M", "-n", "100000000"}, more...)
	r := &running{Cmd: command(t, args...), stderr: new(transcript)}
	pipe, err := r.StdoutPipe()
	require.NoError(t, err)
	r.Stderr = r.stderr
	r.out = bufio.NewReader(pipe)
	require.NoError(t, r.Start())
	for line := ""; !strings.Contains(line, "(elements)"); { // the head of the table: the ranks are measuring
		line, err = r.out.ReadString('\n')
		require.NoError(t, err, "%s", r.stderr)
	}
	pids := r.workers(t)
	require.Len(t, pids, 8)
	begin := time.Now()
	require.NoError(t, syscall.Kill(pids[victim], sig))
	require.Error(t, r.Wait())
	require.Less(t, time.Since(begin), most)
	require.Equal(t, 1, r.ProcessState.ExitCode())
	requireGone(t, pids)
	lines := lostLine.FindAllStringSubmatch(r.stderr.String(), -1)
	if sig == syscall.SIGSTOP { // the error of a survivor, which names the rank
		require.Empty(t, lines, "no rank names another one: %s", r.stderr)
		require.Regexp(t, fmt.Sprintf(`(?m)^ringtrain: worker \d \(.*rank %d \(`, victim), r.stderr.String())
		return
	}
	require.Len(t, lines, 1, "%s", r.stderr)
	require.Equal(t, fmt.Sprint(victim), lines[0][2])
	var survivors []string
	for rank := range 8 {
		if rank != victim {
			survivors = append(survivors, fmt.Sprint(rank))
		}
	}
	require.Equal(t, strings.Join(survivors, ", "), lines[0][1], "%s", r.stderr)
}

// Of 8 processes, whichever is killed or suspended, the other 7 name it. Unless slow tests
// are enabled, only some are. The limits include the end of all workers, which follows the
// report.
func TestEachOfEightIsNamed(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	key := secret.New()
	path := filepath.Join(t.TempDir(), "key")
	require.NoError(t, secret.WriteFile(path, key))
	victims := []int{0, 3, 7}
	if collectivetest.Thorough() {
		victims = []int{0, 1, 2, 3, 4, 5, 6, 7}
	}
	for _, victim := range victims {
		t.Run(fmt.Sprint("kill ", victim), func(t *testing.T) { loseOne(t, victim, syscall.SIGKILL, 3*time.Second) })
	}
	t.Run("kill under TLS", func(t *testing.T) { loseOne(t, 5, syscall.SIGKILL, 3*time.Second, "--key-file", path) })
	t.Run("stop", func(t *testing.T) { loseOne(t, 3, syscall.SIGSTOP, 9*time.Second) })
}

//go:build unix

package launch_test

import (
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/launch"
)

func TestNoLinesAreLost(t *testing.T) {
	j := launch.Start(t.Context(), launch.Options{Tail: 3})
	var in atomic.Int32
	var out, errs []int
	c := play("worker", "flood")
	number := func(line []byte) int {
		require.EqualValues(t, 1, in.Add(1), "callbacks must not be concurrent")
		defer in.Add(-1)
		first, rest, _ := strings.Cut(string(line), " ")
		n, err := strconv.Atoi(first)
		require.NoError(t, err)
		if len(rest) != 0 {
			require.Len(t, rest, n%300)
		}
		return n
	}
	c.Stdout = func(line []byte) { out = append(out, number(line)) }
	c.Stderr = func(line []byte) { errs = append(errs, number(line)) }
	run(t, j, c)
	got := j.Wait()
	require.NoError(t, got.Err())
	require.Equal(t, count(floodLines, 1), out)
	require.Equal(t, count(floodLines/10, 10), errs)
	require.Equal(t, []string{"99970", "99980", "99990"}, got.Exits[0].LastLines)
}

func count(n, step int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i * step
	}
	return all
}

func TestUnterminatedLine(t *testing.T) {
	j := launch.Start(t.Context(), launch.Options{})
	var out []string
	c := play("worker", "unended")
	c.Stdout = func(line []byte) { out = append(out, string(line)) }
	run(t, j, c)
	require.Equal(t, []string{"c", "d"}, j.Wait().Exits[0].LastLines)
	require.Equal(t, []string{"a", "b"}, out)
}

// A process that left its worker's group is not ours to end. Its open end of the worker's
// pipes must not block Wait.
func TestEscapedProcessDoesNotBlockWait(t *testing.T) {
	b := newBeacon(t)
	j := launch.Start(t.Context(), launch.Options{})
	run(t, j, play("escaper", "escaper", b.env()))
	people := b.meet("escaper", "patient")
	require.NoError(t, people["escaper"].conn.Close())
	require.NoError(t, j.Wait().Err())

	escaped := people["patient"]
	require.NoError(t, syscall.Kill(escaped.pid, 0), "it must still run")
	require.NoError(t, escaped.conn.Close())
}

//go:build linux && (amd64 || arm64) && !static

package emulator

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sides has a stream, a second one of high priority, and their shared memory.
type sides struct {
	*Device
	t              *testing.T
	main, side     uintptr
	forked, joined uintptr
	x, y           uintptr
}

func newSides(t *testing.T) *sides {
	d := device(t)
	s := &sides{Device: d, t: t, x: up(t, d, 0), y: up(t, d, 0)}
	require.Zero(t, d.Call("cuStreamCreate", &s.main, 1))
	require.Zero(t, d.Call("cuStreamCreateWithPriority", &s.side, 1, -1))
	require.Zero(t, d.Call("cuEventCreate", &s.forked, 2))
	require.Zero(t, d.Call("cuEventCreate", &s.joined, 2))
	return s
}

// after makes one stream wait for the work of another.
func (s *sides) after(to, event, from uintptr) {
	s.t.Helper()
	require.Zero(s.t, s.Call("cuEventRecord", event, from))
	require.Zero(s.t, s.Call("cuStreamWaitEvent", to, event, 0))
}

func (s *sides) launch(stream uintptr, kernel string, args ...any) {
	s.t.Helper()
	require.NoError(s.t, s.Launch(stream, kernel, threads(1), threads(1), args...))
}

// copies runs rounds. Each changes x, copies it on the second stream, and changes it again. forks
// and joins say whether the streams wait for each other. It returns the copies.
func (s *sides) copies(rounds int, forks, joins bool) (all []float32) {
	for range rounds {
		s.launch(s.main, "add", s.x, float32(1))
		if forks {
			s.after(s.side, s.forked, s.main)
		}
		s.launch(s.side, "read", s.y, s.x, int32(0))
		if joins {
			s.after(s.main, s.joined, s.side)
		}
		s.launch(s.main, "add", s.x, float32(1))
		require.Zero(s.t, s.Call("cuStreamSynchronize", s.main))
		require.Zero(s.t, s.Call("cuStreamSynchronize", s.side))
		all = append(all, down(s.t, s.Device, s.y, 1)[0])
	}
	return all
}

// If two streams do not wait for each other, in either direction, a result is wrong.
func TestStreamsThatDoNotWait(t *testing.T) {
	t.Setenv("RINGTRAIN_EMULATOR_PATIENCE", "10000")
	right := []float32{1, 3, 5, 7, 9, 11, 13, 15}
	require.Equal(t, right, newSides(t).copies(len(right), true, true))
	for _, waits := range [][2]bool{{true, false}, {false, true}} {
		// About one run in a hundred is right by chance, because the streams are threads.
		wrong := false
		for try := 0; try < 20 && !wrong; try++ {
			wrong = !slices.Equal(right, newSides(t).copies(len(right), waits[0], waits[1]))
		}
		require.True(t, wrong, "forks and joins: %v", waits)
	}
}

// A stream that nothing waits for starts even while the program polls another one. Asking for
// the time between two events is no wait.
func TestStreamStartsUnasked(t *testing.T) {
	s := newSides(t)
	var timed uintptr
	require.Zero(t, s.Call("cuEventCreate", &timed, 0))
	require.Zero(t, s.Call("cuEventRecord", timed, s.main))
	var ms float32
	for end := time.Now().Add(time.Minute); s.Call("cuEventElapsedTime", &ms, timed, timed) != 0; {
		require.Zero(t, s.Call("cuStreamQuery", s.side))
		require.True(t, time.Now().Before(end), "the stream never started")
	}
}

// branches launches a graph with a copy on a branch twice. It returns the copies.
func (s *sides) branches(early, late bool) (copies [2]float32) {
	require.Zero(s.t, s.Call("cuStreamBeginCapture_v2", s.main, threadLocal))
	if early { // before the work that it needs
		s.after(s.side, s.forked, s.main)
	}
	s.launch(s.main, "add", s.x, float32(1))
	if !early {
		s.after(s.side, s.forked, s.main)
	}
	s.launch(s.side, "read", s.y, s.x, int32(0))
	if !late {
		s.after(s.main, s.joined, s.side)
	}
	s.launch(s.main, "add", s.x, float32(1))
	if late { // after the work that needs it
		s.after(s.main, s.joined, s.side)
	}
	var graph, exec uintptr
	require.Zero(s.t, s.Call("cuStreamEndCapture", s.main, &graph))
	require.Zero(s.t, s.Call("cuGraphInstantiateWithFlags", &exec, graph, 0))
	require.Zero(s.t, s.Call("cuGraphDestroy", graph))
	for i := range copies {
		require.Zero(s.t, s.Call("cuGraphLaunch", exec, s.main))
		require.Zero(s.t, s.Call("cuStreamSynchronize", s.main))
		copies[i] = down(s.t, s.Device, s.y, 1)[0]
	}
	require.Zero(s.t, s.Call("cuGraphExecDestroy", exec))
	return copies
}

// The branches of a graph wait only for their edges.
func TestGraphBranches(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("RINGTRAIN_EMULATOR_GRAPHS", dir)
	right := [2]float32{1, 3}
	require.Equal(t, right, newSides(t).branches(false, false))
	require.NotEqual(t, right, newSides(t).branches(true, false))
	require.NotEqual(t, right, newSides(t).branches(false, true))

	drawn, err := filepath.Glob(filepath.Join(dir, "*.dot"))
	require.NoError(t, err)
	require.Len(t, drawn, 3)
	var all []string
	for _, path := range drawn {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		all = append(all, string(text))
	}
	require.ElementsMatch(t, []string{
		"digraph step {\n  n0 [label=\"add\"];\n  n1 [label=\"read\"];\n  n0 -> n1;\n  n2 [label=\"add\"];\n  n0 -> n2;\n  n1 -> n2;\n}\n",
		"digraph step {\n  n0 [label=\"add\"];\n  n1 [label=\"read\"];\n  n2 [label=\"add\"];\n  n0 -> n2;\n  n1 -> n2;\n}\n",
		"digraph step {\n  n0 [label=\"add\"];\n  n1 [label=\"read\"];\n  n0 -> n1;\n  n2 [label=\"add\"];\n  n0 -> n2;\n}\n",
	}, all)
}

package cli

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective"
)

// Wrong results show in the table and in the exit code.
func TestBenchWrongResults(t *testing.T) {
	var out, errs bytes.Buffer
	show := &benchScreen{out: &out, err: &errs}
	row := bench.Row{Op: "allreduce", DType: collective.Float32, Reduction: collective.Sum, Root: -1, Ranks: 2, Size: 8, Count: 2, Out: &bench.Timing{Median: 1}, In: &bench.Timing{Median: 1}}
	line := &bytes.Buffer{}
	(&jsonEmitter{w: line}).emit(&rowEvent{Event: "row", Row: row})
	event := decodeEvent(line.Bytes())
	require.Equal(t, &rowEvent{Event: "row", Row: row}, event, "a row survives the way from worker to launcher")
	show.emit(event)
	require.NoError(t, allRight(show.rows))
	row.Out.Wrong = 2
	show.emit(&rowEvent{Row: row})
	require.Contains(t, out.String(), "1.00    0.01    0.01      2")
	rows := show.end()
	require.Len(t, rows, 2)
	require.Contains(t, out.String(), ": 2 FAILED")
	a := &app{stderr: &errs}
	require.Equal(t, exitFailed, a.exit(allRight(rows)))
	require.Contains(t, errs.String(), "2 elements of results were wrong")
}

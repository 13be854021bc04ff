package cli

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// Wrong results show in the table and in the exit code.
func TestBenchWrongResults(t *testing.T) {
	var out, errs bytes.Buffer
	show := &benchScreen{out: &out, Lines: crew.Lines{To: &errs}}
	row := bench.Row{Op: "allreduce", DType: collective.Float32, Reduction: collective.Sum, Root: -1, Ranks: 2, Size: 8, Count: 2, Out: &bench.Timing{Median: 1}, In: &bench.Timing{Median: 1}}
	got := event.Decode(event.Encode(&bench.RowMeasured{Row: row}), bench.Events())
	require.Equal(t, &bench.RowMeasured{Row: row}, got, "a row does not change between worker and launcher")
	show.Emit(got)
	require.NoError(t, allRight(show.rows))
	row.Out.Wrong = 2
	show.Emit(&bench.RowMeasured{Row: row})
	require.Contains(t, out.String(), "1.00    0.01    0.01      2")
	rows := show.end()
	require.Len(t, rows, 2)
	require.Contains(t, out.String(), ": 2 FAILED")
	a := &app{stderr: &errs}
	require.Equal(t, exitFailed, a.exit(allRight(rows)))
	require.Contains(t, errs.String(), "2 elements of results were wrong")
}

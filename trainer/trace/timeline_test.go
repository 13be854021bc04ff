package trace_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/trace"
)

// The file is valid after every call, and each worker has a row.
func TestTimeline(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "trace"))
	require.NoError(t, err)
	defer file.Close()
	read := func() (events []map[string]any) {
		text, err := os.ReadFile(file.Name())
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &events), "%s", text)
		return events
	}
	l := trace.NewTimeline(file, "worker 0", "worker 1")
	require.Len(t, read(), 4)
	require.Equal(t, map[string]any{"name": "thread_name", "ph": "M", "pid": 0., "tid": 1., "ts": 0., "args": map[string]any{"name": "worker 1"}}, read()[2])
	l.Add(trace.Activity{Worker: 1, Name: "compute grad", Began: time.Unix(100, 0), Took: time.Second, Args: map[string]any{"step": 3}},
		trace.Activity{Worker: 0, Name: "apply grad", Began: time.Unix(101, 0), Took: time.Millisecond})
	require.Equal(t, map[string]any{"name": "compute grad", "ph": "X", "pid": 0., "tid": 1., "ts": 100e6, "dur": 1e6, "args": map[string]any{"step": 3.}}, read()[4])
	require.Equal(t, 1e3, read()[5]["dur"])
	require.NoError(t, l.Close())
	require.Len(t, read(), 6)
}

func TestTimelineReportsWriteErrors(t *testing.T) {
	l := trace.NewTimeline(full{}, "worker 0")
	require.ErrorContains(t, l.Close(), "no space")
}

package tuned_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/schedule"
	"github.com/ringtrain/ringtrain/trainer/job/tuned"
)

func TestTable(t *testing.T) {
	f := tuned.Fingerprint{Ranks: 2, Hosts: []int{0, 0}, Transport: "tcp", Streams: 2, CPU: "x", Version: "v1", Order: "ring"}
	table := &schedule.Table{Ranks: 2, Entries: []schedule.Entry{
		{Bytes: 4, Method: schedule.OneShot, Segment: 65536, Measured: 4920, Predicted: 5000},
		{Bytes: 4096, Method: schedule.Ring, Segment: 65536, Measured: 9920, Predicted: 7000},
	}}
	text := tuned.Encode(f, table)
	g, got, err := tuned.Decode(text)
	require.NoError(t, err)
	require.Equal(t, table, got)
	require.Empty(t, f.Differs(g))
	require.Equal(t, f.Name(), g.Name())
	g.CPU, g.Hosts, g.Streams = "y", []int{0, 1}, 1
	require.Equal(t, "hosts, streams, CPU", f.Differs(g))
	require.NotEqual(t, f.Name(), g.Name())
	for _, bad := range []string{
		"", "{}", `{"format":"ringtrain-tune/2"}`, `{"format":"ringtrain-tune/1"}`,
		`{"format":"ringtrain-tune/1","entries":[{"bytes":4,"algorithm":"magic","segment_bytes":1,"measured_us":1}]}`,
		`{"format":"ringtrain-tune/1","entries":[{"bytes":0,"algorithm":"ring","segment_bytes":1,"measured_us":1}]}`,
	} {
		_, _, err := tuned.Decode([]byte(bad))
		require.Error(t, err, bad)
	}
}

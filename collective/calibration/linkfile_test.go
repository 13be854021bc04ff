package calibration

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

func TestLinkFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	s := &Store{Dir: dir, Host: Host{CPU: "a"}, Version: "1"}
	want := schedule.Links{Near: schedule.Loopback, Far: schedule.Network, Calls: []schedule.Sample{{Bytes: 4, Took: 5}}}
	_, ok := s.LoadLinks("x")
	require.False(t, ok)
	require.NoError(t, s.SaveLinks("x", want))
	got, ok := s.LoadLinks("x")
	require.True(t, ok)
	require.Equal(t, want, got)
	_, ok = s.LoadLinks("y")
	require.False(t, ok, "other hosts")
	for _, other := range []*Store{{Dir: dir, Host: Host{CPU: "b"}, Version: "1"}, {Dir: dir, Host: Host{CPU: "a"}, Version: "2"}, {}, nil} {
		_, ok = other.LoadLinks("x")
		require.False(t, ok)
	}
	require.NoError(t, (*Store)(nil).SaveLinks("x", want))

	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	for _, text := range []string{"", "{}", `{"format": "ringtrain-links/1"}`} {
		require.NoError(t, os.WriteFile(files[0], []byte(text), 0o600))
		_, ok = s.LoadLinks("x")
		require.False(t, ok, text)
	}
	require.NoError(t, s.SaveLinks("x", schedule.Links{Calls: []schedule.Sample{{Bytes: -1}}}))
	_, ok = s.LoadLinks("x")
	require.False(t, ok, "impossible links")
}

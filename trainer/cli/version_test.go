package cli_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/tcp"
)

func TestVersion(t *testing.T) {
	code, stdout, stderr := result("version", "--json")
	require.Zero(t, code)
	require.Empty(t, stderr)
	require.Equal(t, 1, strings.Count(stdout, "\n"))
	var v map[string]any
	require.NoError(t, json.Unmarshal([]byte(stdout), &v))
	require.Equal(t, runtime.Version(), v["go"])
	require.Equal(t, runtime.GOOS, v["os"])
	require.Equal(t, runtime.GOARCH, v["arch"])
	require.EqualValues(t, tcp.Version, v["wire"])
	require.NotEmpty(t, v["version"])
	require.Contains(t, v, "dirty")

	code, stdout, _ = result("version")
	require.Zero(t, code)
	require.Contains(t, stdout, "ringtrain "+v["version"].(string)+"\nrevision  ")
	require.Contains(t, stdout, runtime.Version())
	code, stdout, stderr = result("version", "please")
	require.Equal(t, 2, code)
	require.Empty(t, stdout)
	require.Equal(t, "ringtrain: version takes only flags, not \"please\"\n", stderr)
}

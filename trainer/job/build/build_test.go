package build

import (
	"encoding/json"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/tcp"
)

func TestOf(t *testing.T) {
	here := Build{Version: "(devel)", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Wire: tcp.Version}
	require.Equal(t, here, of(&debug.BuildInfo{}), "go build without a repository")

	released := here
	released.Version, released.Revision, released.Dirty, released.Cgo, released.Tags = "v1.2.3", "0123abcd", true, true, "gpu,noasm"
	require.Equal(t, released, of(&debug.BuildInfo{Main: debug.Module{Path: "github.com/ringtrain/ringtrain", Version: "v1.2.3"}, Settings: []debug.BuildSetting{
		{Key: "-tags", Value: "gpu,noasm"}, {Key: "CGO_ENABLED", Value: "1"}, {Key: "vcs.revision", Value: "0123abcd"},
		{Key: "vcs.modified", Value: "true"}, {Key: "GOAMD64", Value: "v1"},
	}}))
	clean := of(&debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.modified", Value: "false"}, {Key: "CGO_ENABLED", Value: "0"}}})
	require.Equal(t, here, clean)
}

// Programs read "ringtrain version --json", so the names of fields must not change.
func TestNames(t *testing.T) {
	text, err := json.Marshal(Build{Version: "v1", Revision: "r", Dirty: true, Go: "go1", OS: "o", Arch: "a", Cgo: true, Tags: "gpu", Wire: 7})
	require.NoError(t, err)
	require.Equal(t, `{"version":"v1","revision":"r","dirty":true,"go":"go1","os":"o","arch":"a","cgo":true,"tags":"gpu","wire":7}`, string(text))
	require.Equal(t, Version(), Read().Version)
}

// A build without a repository or tags has no empty fields, and a build of another tree
// with its changes differs from a clean one.
func TestFieldsThatAreLeftOut(t *testing.T) {
	text, err := json.Marshal(of(&debug.BuildInfo{}))
	require.NoError(t, err)
	require.NotContains(t, string(text), `"revision"`)
	require.NotContains(t, string(text), `"tags"`)
	require.Contains(t, string(text), `"dirty":false`)

	settings := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123abcd"}, {Key: "vcs.modified", Value: "false"}}
	clean := of(&debug.BuildInfo{Settings: settings})
	settings[1].Value = "true"
	require.NotEqual(t, clean, of(&debug.BuildInfo{Settings: settings}))
	require.Equal(t, "v0.2.1-0.20260101000000-0123456789ab", of(&debug.BuildInfo{Main: debug.Module{Path: "github.com/ringtrain/ringtrain", Version: "v0.2.1-0.20260101000000-0123456789ab"}}).Version)
}

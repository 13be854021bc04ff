package version

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

// released is the record of a program of this module.
func released(v string) *debug.BuildInfo {
	return &debug.BuildInfo{Main: debug.Module{Path: path, Version: v}}
}

// In a program of another module, the version is that of the library.
func TestOf(t *testing.T) {
	with := func(m debug.Module) *debug.BuildInfo {
		other := &debug.Module{Path: path + "x", Version: "v3.0.0"}
		return &debug.BuildInfo{Main: debug.Module{Path: "example.com/x", Version: "v9.0.0"}, Deps: []*debug.Module{other, &m}}
	}
	require.Equal(t, "v1.2.3", Of(released("v1.2.3")))
	require.Equal(t, "v0.2.1-0.20260101000000-0123456789ab+dirty", Of(released("v0.2.1-0.20260101000000-0123456789ab+dirty")))
	require.Equal(t, "v1.2.3", Of(with(debug.Module{Path: path, Version: "v1.2.3"})))
	for _, info := range []*debug.BuildInfo{
		{}, released(""), released(Unreleased), with(debug.Module{Path: "example.com/y", Version: "v1.2.3"}),
		with(debug.Module{Path: path, Version: "v1.2.3", Replace: &debug.Module{Path: "../ringtrain"}}),
	} {
		require.Equal(t, Unreleased, Of(info))
		require.Equal(t, Unreleased, Release(info))
	}
}

// Builds of one release work together, and so do all builds without a release,
// whatever stamps the repository gave them.
func TestRelease(t *testing.T) {
	for v, want := range map[string]string{
		"v1.2.3": "v1.2.3", "v1.2.3-rc.1": "v1.2.3-rc.1", "": Unreleased, Unreleased: Unreleased, "v1.2.3+dirty": Unreleased,
		"v0.0.0-20250102030405-0123456789ab": Unreleased, "v1.2.4-0.20250102030405-0123456789ab": Unreleased,
		"v1.2.4-rc.1.0.20250102030405-0123456789ab+dirty": Unreleased,
	} {
		require.Equal(t, want, Release(released(v)), v)
	}
	require.NotEmpty(t, Release(Recorded()))
}

func TestBuild(t *testing.T) {
	settings := []debug.BuildSetting{{Key: "vcs", Value: "git"}, {Key: "vcs.revision", Value: "0123abcd"}, {Key: "vcs.modified", Value: "false"}}
	info := released("")
	require.Equal(t, Unreleased, Build(info))
	info.Settings = settings
	require.Equal(t, "(devel) 0123abcd", Build(info))
	info.Settings[2].Value = "true"
	require.Equal(t, "(devel) 0123abcd true", Build(info))
	info.Main.Version = "v1.2.3"
	require.Equal(t, "v1.2.3", Build(info))
}

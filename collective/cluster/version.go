package cluster

import (
	"regexp"
	"runtime/debug"
	"strings"
)

// modulePath is the module path of this library.
const modulePath = "github.com/ringtrain/ringtrain"

// unreleased is the version of a build that is not a release.
const unreleased = "(devel)"

// moduleVersion returns the version of this library in the running program.
func moduleVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return unreleased
	}
	if info.Main.Path == modulePath {
		return release(info.Main.Version)
	}
	for _, m := range info.Deps {
		if m.Path == modulePath && m.Replace == nil {
			return release(m.Version)
		}
	}
	return unreleased
}

// buildVersion returns the version of this library, with the revision that an unreleased
// program was built from, if that is known.
func buildVersion() string {
	version := moduleVersion()
	info, ok := debug.ReadBuildInfo()
	if !ok || version != unreleased {
		return version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" || s.Key == "vcs.modified" && s.Value == "true" {
			version += " " + s.Value
		}
	}
	return version
}

// release removes everything that depends on the repository of a build. Two builds
// of one tree may have different stamps, or none, and must still work together.
func release(version string) string {
	stamped := regexp.MustCompile(`[-.]\d{14}-[0-9a-f]{12}$`)
	if version == "" || strings.Contains(version, "+") || stamped.MatchString(version) {
		return unreleased
	}
	return version
}

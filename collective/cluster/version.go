package cluster

import (
	"regexp"
	"runtime/debug"
	"strings"
)

// modulePath is that of this library, in whatever program it is.
const modulePath = "github.com/ringtrain/ringtrain"

// unreleased is the version of a build that is of no release.
const unreleased = "(devel)"

// moduleVersion is the version of this library that the program was built with.
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

// release is a version without what depends on the repository that a program was
// built in: two builds of one tree may carry different stamps, or none, and work
// together all the same.
func release(version string) string {
	stamped := regexp.MustCompile(`[-.]\d{14}-[0-9a-f]{12}$`)
	if version == "" || strings.Contains(version, "+") || stamped.MatchString(version) {
		return unreleased
	}
	return version
}

// Package version says which version of this library a program contains.
package version

import (
	"cmp"
	"regexp"
	"runtime/debug"
	"strings"
)

// path is the module path of this library.
const path = "github.com/ringtrain/ringtrain"

// Unreleased is the version of a build that is not a release.
const Unreleased = "(devel)"

// Recorded returns what the go command recorded in this program; nothing if another tool
// built it.
func Recorded() *debug.BuildInfo {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info
	}
	return &debug.BuildInfo{}
}

// Of returns the version of this library that info records, also in a program of another
// module. It is a pseudo-version if the library was built from a repository between two
// releases, and Unreleased if nothing is recorded or the program replaces the library.
func Of(info *debug.BuildInfo) string {
	if info.Main.Path == path {
		return cmp.Or(info.Main.Version, Unreleased)
	}
	for _, m := range info.Deps {
		if m.Path == path && m.Replace == nil {
			return cmp.Or(m.Version, Unreleased)
		}
	}
	return Unreleased
}

// Release is Of without everything that depends on the repository of a build. Two builds
// of one tree may have different stamps, or none, and must still work together.
func Release(info *debug.BuildInfo) string {
	stamped := regexp.MustCompile(`[-.]\d{14}-[0-9a-f]{12}$`)
	v := Of(info)
	if strings.Contains(v, "+") || stamped.MatchString(v) {
		return Unreleased
	}
	return v
}

// Build is Release, with the revision that an unreleased program was built from, if info
// has it.
func Build(info *debug.BuildInfo) string {
	v := Release(info)
	if v != Unreleased {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" || s.Key == "vcs.modified" && s.Value == "true" {
			v += " " + s.Value
		}
	}
	return v
}

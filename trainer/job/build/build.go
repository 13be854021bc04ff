// Package build says of which version, revision and tags this program is.
package build

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/ringtrain/ringtrain/collective/tcp"
)

// A Build is what this program was made of.
type Build struct {
	Version  string `json:"version"`            // of the module; (devel) in a working tree
	Revision string `json:"revision,omitempty"` // of the repository
	Dirty    bool   `json:"dirty"`              // the tree had changes that no revision has
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	Cgo      bool   `json:"cgo"`
	Tags     string `json:"tags,omitempty"` // separated by commas
	Wire     int    `json:"wire"`           // version of the wire format
}

// Read is what the linker has left in this program.
func Read() Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return of(info)
}

// of is what the linker's notes say.
func of(info *debug.BuildInfo) Build {
	b := Build{Version: version(info), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Wire: tcp.Version}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Dirty = s.Value == "true"
		case "CGO_ENABLED":
			b.Cgo = s.Value == "1"
		case "-tags":
			b.Tags = s.Value
		}
	}
	return b
}

// Version is that of the main module; (devel) in a working tree.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return version(info)
}

func version(info *debug.BuildInfo) string { return cmp.Or(info.Main.Version, "(devel)") }

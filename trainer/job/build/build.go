// Package build reports the version, revision and build tags of this program.
package build

import (
	"runtime"
	"runtime/debug"

	"github.com/ringtrain/ringtrain/collective/tcp"
	"github.com/ringtrain/ringtrain/collective/version"
)

// A Build describes how this program was built.
type Build struct {
	Version  string `json:"version"`            // of this library; see version.Of
	Revision string `json:"revision,omitempty"` // of the repository
	Dirty    bool   `json:"dirty"`              // the tree had uncommitted changes
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	Cgo      bool   `json:"cgo"`
	Tags     string `json:"tags,omitempty"` // separated by commas
	Wire     int    `json:"wire"`           // version of the wire format
}

// Read returns what the go command recorded in this program.
func Read() Build { return of(version.Recorded()) }

// of returns the Build that info describes.
func of(info *debug.BuildInfo) Build {
	b := Build{Version: version.Of(info), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Wire: tcp.Version}
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

// Version returns the version of this library in this program; see version.Of.
func Version() string { return version.Of(version.Recorded()) }

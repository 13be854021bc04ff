package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/collective/tcp"
)

// build is what this program was made of.
type build struct {
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

// thisBuild reads what the linker has left in the program.
func thisBuild() build {
	b := build{Version: version(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Wire: tcp.Version}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
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

// write shows the build, a line for each fact.
func (b build) write(w io.Writer) {
	revision := cmp.Or(b.Revision, "unknown")
	if b.Dirty {
		revision += ", with changes"
	}
	cgo := "no cgo"
	if b.Cgo {
		cgo = "cgo"
	}
	fmt.Fprintf(w, "ringtrain %s\nrevision  %s\ngo        %s %s/%s, %s\ntags      %s\nwire      version %d\n",
		b.Version, revision, b.Go, b.OS, b.Arch, cgo, cmp.Or(b.Tags, "none"), b.Wire)
}

func (a *app) versionCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print version, revision and build tags",
		Long: `Say which version this is, of which revision, by which Go and with which build tags.
Programs work together if the versions of their wire formats are the same and they are of
the same release, or both of none. The revision does not matter.`,
		Args: nothing("version"),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return a.writeJSON(thisBuild())
			}
			thisBuild().write(a.stdout)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// nothing refuses arguments.
func nothing(name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usagef("%s takes no arguments, not %q", name, args[0])
		}
		return nil
	}
}

// writeJSON writes one object on one line.
func (a *app) writeJSON(v any) error {
	return json.NewEncoder(a.stdout).Encode(v)
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

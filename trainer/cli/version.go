package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/trainer/job/build"
)

// writeBuild writes a build, one fact per line.
func writeBuild(w io.Writer, b build.Build) {
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

func versionCommand(a *app) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print version, revision and build tags",
		Long: `Print the version, the revision, the Go version and the build tags of this program. Two
programs can work together if the version of their wire format is the same, and if they are
the same release or both have none. The revision does not matter.`,
		Args: nothing,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return a.writeJSON(build.Read())
			}
			writeBuild(a.stdout, build.Read())
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// writeJSON writes one object on one line.
func (a *app) writeJSON(v any) error {
	return json.NewEncoder(a.stdout).Encode(v)
}

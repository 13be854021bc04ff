package cli

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// checkPaths returns an error if the value of a flag that names a file or directory begins with
// --. It is the next flag: in --json --csv, the author took --json for a flag without a value.
func checkPaths(flags *pflag.FlagSet) (err error) {
	flags.Visit(func(f *pflag.Flag) {
		what, _ := pflag.UnquoteUsage(f)
		if value := f.Value.String(); err == nil && slices.Contains([]string{"FILE", "DIR"}, what) && strings.HasPrefix(value, "--") {
			err = usagef("--%s must be the name of a %s, not %q; if that is its name, write ./%s", f.Name, what, value, value)
		}
	})
	return err
}

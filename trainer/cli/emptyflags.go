package cli

import (
	"fmt"

	"github.com/spf13/pflag"
)

// checkEmpty returns an error if one of these flags is given an empty value: it is an unset
// variable of a script. What would happen without the flag is not what its author meant.
func checkEmpty(flags *pflag.FlagSet, names ...string) error {
	for _, name := range names {
		if flags.Changed(name) && flags.Lookup(name).Value.String() == "" {
			return fmt.Errorf("--%s is empty: give it a value, or leave it out", name)
		}
	}
	return nil
}

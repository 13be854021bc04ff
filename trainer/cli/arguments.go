package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// exactly returns a check for a command that takes one argument.
func exactly(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch len(args) {
		case 0:
			return usagef("%s needs a %s", nameOf(cmd), what)
		case 1:
			return nil
		}
		return usagef("%s takes one %s, not %d", nameOf(cmd), what, len(args))
	}
}

// oneConfig is exactly for a config, with a hint for new users.
func oneConfig(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usagef("%s needs a CONFIG file, such as examples/mnist.cfg", nameOf(cmd))
	}
	return exactly("CONFIG file")(cmd, args)
}

// nothing refuses all arguments.
func nothing(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("%s takes only flags, not %q", nameOf(cmd), args[0])
	}
	return nil
}

// nameOf returns the name of a command after that of the program, such as "store get".
func nameOf(cmd *cobra.Command) string {
	_, name, _ := strings.Cut(cmd.CommandPath(), " ")
	return name
}

package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/trainer/config"
)

// flagError rewords pflag's error about a flag for the user.
func flagError(cmd *cobra.Command, err error) error {
	var number *strconv.NumError
	if errors.As(err, &number) {
		before, _, _ := strings.Cut(err.Error(), number.Error())
		return fmt.Errorf("%s%s", before, wrongNumber(number))
	}
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: ")
	if near := config.Nearest(name, flagNames(cmd)); unknown && near != "" {
		return fmt.Errorf("%w; did you mean %s?", err, near)
	}
	return err
}

// wrongNumber says why a word is not a value of a flag.
func wrongNumber(e *strconv.NumError) string {
	switch {
	case errors.Is(e, strconv.ErrRange):
		return "it is out of range"
	case e.Func == "ParseUint":
		return "a whole number from 0 is expected"
	case e.Func == "ParseBool":
		return "true or false is expected"
	}
	return "a whole number is expected"
}

// flagNames returns the flags of a command, with dashes, as its help lists them.
func flagNames(cmd *cobra.Command) []string {
	var out []string
	for line := range strings.Lines(cmd.Flags().FlagUsages()) {
		for _, word := range strings.Fields(line)[:2] { // "-h," may be before
			if strings.HasPrefix(word, "--") {
				out = append(out, word)
				break
			}
		}
	}
	return out
}

// strict makes the commands that cobra adds refuse unknown arguments, as ours do.
func strict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				_, _, err := root.Find(args)
				return err
			}
		}
	}
}

package cli

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/trainer/config"
)

// flagError rewords pflag's error about a flag for the user.
func flagError(cmd *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	var number *strconv.NumError
	if errors.As(err, &invalid) && errors.As(err, &number) {
		if invalid.GetFlag().Value.Type() == "intSlice" {
			return fmt.Errorf("--%s %s: it must be whole numbers, separated by commas", invalid.GetFlag().Name, invalid.GetValue())
		}
		return fmt.Errorf("--%s %s: %s", invalid.GetFlag().Name, invalid.GetValue(), wrongNumber(number))
	}
	var absent *pflag.NotExistError
	if !errors.As(err, &absent) {
		return err
	}
	name := "--" + absent.GetSpecifiedName()
	if letters := absent.GetSpecifiedShortnames(); letters != "" { // "-workers 2" for "--workers 2"
		name = "-" + letters
	}
	if near := config.Nearest(name, flagNames(cmd)); near != "" {
		return fmt.Errorf("unknown flag: %s; did you mean %s?", name, near)
	}
	return fmt.Errorf("unknown flag: %s; %s --help lists the flags", name, cmd.CommandPath())
}

// wrongNumber says why a word is not a value of a flag.
func wrongNumber(e *strconv.NumError) string {
	switch {
	case errors.Is(e, strconv.ErrRange):
		return "it is out of range"
	case e.Func == "ParseUint":
		return "it must be a whole number, at least 0"
	case e.Func == "ParseBool":
		return "it must be true or false"
	}
	return "it must be a whole number"
}

// commandError rewords cobra's error about a command that does not exist.
func commandError(root *cobra.Command, err error) error {
	parts := cobraUnknown.FindStringSubmatch(err.Error())
	if parts == nil {
		return errors.New(strings.Join(strings.Fields(err.Error()), " "))
	}
	word, path := parts[1], parts[2]
	parent, _, _ := root.Find(strings.Fields(path)[1:])
	var names []string
	for _, c := range parent.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	switch near := config.Nearest(word, names); {
	case near != "":
		return fmt.Errorf("unknown command %q; did you mean %s %s?", word, path, near)
	case len(names) == 0:
		return fmt.Errorf("%s takes no arguments, not %q", strings.TrimPrefix(path, "ringtrain "), word)
	}
	return fmt.Errorf("unknown command %q; %s --help lists the commands", word, path)
}

// cobraUnknown matches cobra's error about a command that does not exist.
var cobraUnknown = regexp.MustCompile(`^unknown command "(.*)" for "([^"]*)"`)

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

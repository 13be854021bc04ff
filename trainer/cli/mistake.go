package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
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
		switch {
		case errors.Is(number, strconv.ErrRange):
			return fmt.Errorf("--%s %s is out of range", invalid.GetFlag().Name, invalid.GetValue())
		case invalid.GetFlag().Value.Type() == "intSlice":
			return fmt.Errorf("--%s must be whole numbers separated by commas, not %q", invalid.GetFlag().Name, invalid.GetValue())
		}
		return fmt.Errorf("--%s must be %s, not %q", invalid.GetFlag().Name, wanted(number), invalid.GetValue())
	}
	if invalid != nil && invalid.GetFlag().Value.Type() == "duration" {
		return fmt.Errorf("--%s must be a time such as 5s, not %q", invalid.GetFlag().Name, invalid.GetValue())
	}
	if errors.Is(err, errSize) {
		return fmt.Errorf("--%s must be a number of bytes, or one with K, M or G, not %q", invalid.GetFlag().Name, invalid.GetValue())
	}
	if errors.Is(err, errEmpty) {
		return fmt.Errorf("--%s is empty: give it a value, or leave it out", invalid.GetFlag().Name)
	}
	var absent *pflag.NotExistError
	if !errors.As(err, &absent) {
		return err
	}
	name := "--" + absent.GetSpecifiedName()
	if strings.Contains(name, ".") { // commands that take overrides do not parse them as flags
		return fmt.Errorf("%s takes no %v: it does not read a config", cmd.Name(), config.Override{Path: absent.GetSpecifiedName()})
	}
	if letters := absent.GetSpecifiedShortnames(); letters != "" { // "-workers 2" for "--workers 2"
		name = "-" + letters
	}
	known := flagNames(cmd)
	for _, other := range otherNames[name] {
		if slices.Contains(known, other) {
			return fmt.Errorf("unknown flag: %s; did you mean %s?", name, other)
		}
	}
	if near := config.Nearest(name, known); near != "" {
		return fmt.Errorf("unknown flag: %s; did you mean %s?", name, near)
	}
	return fmt.Errorf("unknown flag: %s; %s --help lists the flags", name, cmd.CommandPath())
}

// errEmpty is why a flag takes no empty value.
var errEmpty = errors.New("is empty")

// otherNames has flags that some commands, or other programs, have under other names.
var otherNames = map[string][]string{
	"--ranks":          {"--workers"},
	"--workers":        {"--ranks"},
	"--nproc-per-node": {"--workers", "--ranks"}, // of torchrun
	"--nproc_per_node": {"--workers", "--ranks"},
	"-n":               {"--workers", "--ranks"}, // of mpirun and srun
	"-np":              {"--workers", "--ranks"},
	"--epochs":         {"--steps"},
	"--output":         {"--out"},
	"--output-dir":     {"--out"},
}

// wanted says what a flag takes whose value could not be parsed.
func wanted(e *strconv.NumError) string {
	switch e.Func {
	case "ParseUint":
		return "a whole number, at least 0"
	case "ParseBool":
		return "true or false"
	case "ParseFloat":
		return "a number"
	}
	return "a whole number"
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
		return fmt.Errorf("%s takes only flags, not %q", strings.TrimPrefix(path, "ringtrain "), word)
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
			cmd.Long = "Show the help of a command."
			cmd.Args = func(_ *cobra.Command, args []string) error {
				_, _, err := root.Find(args)
				return err
			}
		}
	}
}

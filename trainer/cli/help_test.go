package cli

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/catalog"
)

// commands returns all commands by path.
func commands() map[string]*cobra.Command {
	a := &app{catalog: catalog.New(), stdout: &output{w: io.Discard}, stderr: io.Discard}
	root := a.root()
	strict(root)
	all := map[string]*cobra.Command{}
	var add func(*cobra.Command)
	add = func(cmd *cobra.Command) {
		cmd.InitDefaultHelpFlag()
		all[strings.TrimPrefix(cmd.CommandPath(), "ringtrain ")] = cmd
		for _, c := range cmd.Commands() {
			add(c)
		}
	}
	add(root)
	return all
}

// If help has headings, every flag is under one of them. Commands with many flags
// define them through under (help.go), never through cmd.Flags().
func TestEveryFlagHasAHeading(t *testing.T) {
	for path, cmd := range commands() {
		grouped := slices.Contains([]string{"train", "bench collective", "bench scaling", "tune"}, path)
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			switch {
			case f.Name == "help":
			case grouped:
				require.Contains(t, headings(), headingOf(f), "%s --%s: define it in under(cmd, heading, ...)", path, f.Name)
				require.NotContains(t, f.Usage, "(default:", "%s --%s: pflag says (default ...)", path, f.Name)
			default:
				require.Empty(t, headingOf(f), "%s --%s: give every flag of the command a heading, or none", path, f.Name)
			}
		})
	}
}

// Each flag is under one heading. A second definition is an error.
func TestFlagUnderTwoHeadings(t *testing.T) {
	cmd := &cobra.Command{}
	define := func(flags *pflag.FlagSet) { flags.Bool("twice", false, "") }
	under(cmd, jobFlags, define)
	require.Panics(t, func() { under(cmd, dataFlags, define) })
}

// Help fits a terminal of the usual width and uses the space of a wider one.
func TestHelpFits(t *testing.T) {
	for path, cmd := range commands() {
		lines := map[int]int{}
		for _, columns := range []int{80, 120} {
			var out bytes.Buffer
			writeHelp(&out, cmd, columns)
			for line := range strings.Lines(out.String()) {
				lines[columns]++
				if !strings.Contains(path, "completion") { // its text comes from cobra and contains commands to copy
					require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimRight(line, "\n")), columns, "%s: %s", path, line)
				}
			}
		}
		if path == "train" {
			require.Less(t, lines[120], lines[80]*4/5)
		}
	}
}

func TestTrainHelp(t *testing.T) {
	var out bytes.Buffer
	writeHelp(&out, commands()["train"], 80)
	var order []string
	for line := range strings.Lines(out.String()) {
		if h, ok := strings.CutSuffix(line, ":\n"); ok && line[0] != ' ' {
			order = append(order, h)
		}
	}
	require.Equal(t, []string{"Exit codes", "Usage", "Examples", "Job", "Data", "Saving", "Network", "Device", "Output and debugging", "Other"}, order)
	require.Contains(t, out.String(), "\nData:\n      --data SOURCE ")
	require.Contains(t, out.String(), "\n      --workers N                start N workers on this machine (default\n                                 ray.num_workers of the config, or 1)\n")
}

func TestHelpOfACommand(t *testing.T) {
	root := &cobra.Command{Use: "tool"}
	cmd := &cobra.Command{
		Use: "run FILE [flags]", Example: "  tool run x.cfg", Run: func(*cobra.Command, []string) {},
		Long: "Run what a file\nsays, until it has been done or you are tired of it.\n\nExit codes:\n  0  done\n  1  failed\n\nThe end.",
	}
	root.AddCommand(cmd)
	under(cmd, savingFlags, func(flags *pflag.FlagSet) {
		flags.String("out", "", "write the result to `DIR`")
		flags.Int("keep", 3, "keep the newest `N` results, and remove those that are older")
	})
	under(cmd, jobFlags, func(flags *pflag.FlagSet) { flags.Bool("fast", false, "hurry") })
	cmd.InitDefaultHelpFlag()
	var out bytes.Buffer
	writeHelp(&out, cmd, 48)
	require.Equal(t, `Run what a file says, until it has been done or
you are tired of it.

Exit codes:
  0  done
  1  failed

The end.

Usage:
  tool run FILE [flags]

Examples:
  tool run x.cfg

Job:
      --fast   hurry

Saving:
      --out DIR   write the result to DIR
      --keep N    keep the newest N
                  results, and remove
                  those that are older
                  (default 3)

Other:
  -h, --help   help for run
`, out.String())
}

// Lines that pflag leaves too long for a narrow terminal are wrapped between words.
func TestFoldUsages(t *testing.T) {
	require.Equal(t, "      --out DIR\n    (model.safetensors)\n    to DIR on every\n    machine\n  short\n", foldUsages("      --out DIR\n    (model.safetensors) to DIR on every machine\n  short\n", 24))
}

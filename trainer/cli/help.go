package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A heading groups flags in help.
type heading string

// The headings of help, in this order.
const (
	jobFlags     heading = "Job"
	measureFlags heading = "Measurement"
	dataFlags    heading = "Data"
	savingFlags  heading = "Saving"
	networkFlags heading = "Network"
	machineFlags heading = "Device"
	outputFlags  heading = "Output and debugging"
)

func headings() []heading {
	return []heading{jobFlags, measureFlags, dataFlags, savingFlags, networkFlags, machineFlags, outputFlags}
}

// under adds flags to a command, under a heading of its help, in the order in which add
// defines them. A usage that describes its default in words says "(default ...)", as pflag
// does for other flags.
func under(cmd *cobra.Command, h heading, add func(flags *pflag.FlagSet)) {
	set := pflag.NewFlagSet(string(h), pflag.ContinueOnError)
	set.SortFlags, cmd.Flags().SortFlags = false, false
	add(set)
	set.VisitAll(func(f *pflag.Flag) {
		f.Annotations = map[string][]string{headingKey: {string(h)}}
		cmd.Flags().AddFlag(f)
	})
}

// headingKey is the annotation of a flag that holds its heading.
const headingKey = "heading"

// headingOf returns the heading of a flag, or "".
func headingOf(f *pflag.Flag) heading {
	if at := f.Annotations[headingKey]; len(at) == 1 {
		return heading(at[0])
	}
	return ""
}

// flagsUnder returns the flags of a command under a heading; "" for those without one.
func flagsUnder(cmd *cobra.Command, h heading) *pflag.FlagSet {
	set := pflag.NewFlagSet(string(h), pflag.ContinueOnError)
	set.SortFlags = false
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if headingOf(f) == h {
			set.AddFlag(f)
		}
	})
	return set
}

// exitCodes describes the exit codes of a command that signals can stop.
func exitCodes(failed, wrong string) string {
	return fmt.Sprintf("Exit codes:\n  %-3d  done\n  %-3d  %s\n  %-3d  %s\n  %-3d  stopped by SIGTERM or SIGHUP\n  %-3d  stopped by Ctrl-C",
		exitOK, exitFailed, failed, exitUsage, wrong, exitTerminated, exitInterrupted)
}

// writeHelp writes the help of a command for a terminal of this width.
func writeHelp(w io.Writer, cmd *cobra.Command, columns int) {
	var b strings.Builder
	about := cmd.Long
	if about == "" {
		about = cmd.Short + "."
	}
	b.WriteString(wrap(about, columns))
	b.WriteString("\nUsage:\n")
	if cmd.Runnable() && !cmd.HasAvailableSubCommands() {
		b.WriteString("  " + cmd.UseLine() + "\n")
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("  " + cmd.CommandPath() + " COMMAND [flags]\n")
		writeCommands(&b, cmd)
	}
	if cmd.HasExample() {
		b.WriteString("\nExamples:\n" + strings.TrimRight(cmd.Example, "\n") + "\n")
	}
	grouped := false
	for _, h := range headings() {
		if set := flagsUnder(cmd, h); set.HasAvailableFlags() {
			grouped = true
			fmt.Fprintf(&b, "\n%s:\n%s", h, foldUsages(set.FlagUsagesWrapped(columns), columns))
		}
	}
	rest := "Flags"
	if grouped {
		rest = "Other"
	}
	if set := flagsUnder(cmd, ""); set.HasAvailableFlags() {
		fmt.Fprintf(&b, "\n%s:\n%s", rest, foldUsages(set.FlagUsagesWrapped(columns), columns))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nRun \"%s COMMAND --help\" for more about a command.\n", cmd.CommandPath())
	}
	_, _ = io.WriteString(w, b.String()) // stdout keeps its failure
}

// writeCommands lists the commands below one.
func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	b.WriteString("\nCommands:\n")
	width := 0
	for _, c := range cmd.Commands() {
		width = max(width, len(c.Name()))
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			fmt.Fprintf(b, "  %-*s  %s\n", width, c.Name(), c.Short)
		}
	}
}

// foldUsages breaks lines of usages that are longer than columns. pflag leaves such lines in
// narrow terminals, after a long word.
func foldUsages(usages string, columns int) string {
	var b strings.Builder
	for line := range strings.Lines(usages) {
		text := strings.TrimLeft(line, " ")
		indent := line[:len(line)-len(text)]
		if strings.HasPrefix(text, "-") || utf8.RuneCountInString(line) <= columns {
			b.WriteString(line)
			continue
		}
		for part := range strings.Lines(wrap(text, columns-len(indent))) {
			b.WriteString(indent + part)
		}
	}
	return b.String()
}

// wrap wraps the paragraphs of a text at columns. Only a long word makes a line longer. Lines
// that begin with a space stay as they are.
func wrap(text string, columns int) string {
	var b strings.Builder
	width := 0 // of the line in progress
	end := func() {
		if width > 0 {
			b.WriteByte('\n')
		}
		width = 0
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if line == "" || line[0] == ' ' {
			end()
			b.WriteString(line + "\n")
			continue
		}
		for _, word := range strings.Fields(line) {
			n := utf8.RuneCountInString(word)
			switch {
			case width == 0:
			case width+1+n > columns:
				end()
			default:
				b.WriteByte(' ')
				width++
			}
			b.WriteString(word)
			width += n
		}
	}
	end()
	return b.String()
}

package rounds

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// A Command writes the table of a comparison whose runs are files of a directory.
type Command[Run any] struct {
	Name string // of the command
	Peer string // whose speed -require compares, such as "spaCy's"

	Read     func(dir fs.FS) ([]Run, error)
	WriteCSV func(file string, runs []Run) error
	Plot     func(dir string, runs []Run) error // writes plots; nil if there are none
	// Write returns an error if ringtrain's speed is less than least times the peer's.
	Write func(w io.Writer, runs []Run, least float64, notes []string) error
}

// Exit runs the command and returns its exit code.
func (c Command[Run]) Exit(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	csvFile := flags.String("csv", "", "`file` for all runs")
	plots := new(string)
	if c.Plot != nil {
		plots = flags.String("plots", "", "`directory` for plots")
	}
	least := flags.Float64("require", 0, "minimum `ratio` of ringtrain's speed to "+c.Peer)
	notes := Notes(flags)
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil || flags.NArg() != 1 {
		fmt.Fprintf(stderr, "usage: %s [-csv FILE] [-require RATIO] [-note TEXT]... DIR\n", c.Name)
		return 2
	}
	runs, err := c.Read(os.DirFS(flags.Arg(0)))
	if err != nil {
		err = fmt.Errorf("%s: %w", flags.Arg(0), err)
	}
	if err == nil && *csvFile != "" {
		err = c.WriteCSV(*csvFile, runs)
	}
	if err == nil && *plots != "" {
		err = c.Plot(*plots, runs)
	}
	if err == nil {
		err = c.Write(stdout, runs, *least, *notes)
	}
	if err != nil {
		fmt.Fprintf(stderr, "%s: %v\n", c.Name, err)
		return 1
	}
	return 0
}

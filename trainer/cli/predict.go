package cli

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/job"
)

// predictFlags are the arguments and flags of predict.
type predictFlags struct {
	checkpoint  string
	files       []string // "-" is stdin
	inputFormat string
	data        string
	format      string
	json        bool
	best        bool
}

func predictCommand(a *app) *cobra.Command {
	var f predictFlags
	cmd := &cobra.Command{
		Use:   "predict CHECKPOINT [FILE... | -] [flags]",
		Short: "Predict rows with trained weights",
		Long: `Print what trained weights predict for each row, one line per row. CHECKPOINT is the --out
directory of a run, or a file in it.

Rows come from FILEs, from stdin (-) or from --data. They need no labels. A directory means
all files in it, sorted by name. FILEs may be compressed with gzip. The file name tells the
format; for other names and for stdin, use --input-format. Rows are read as they are
needed. If a row is bad, the rows before it are printed, and the exit code is 1.

A line has the number of the row (from 0) and what the task predicts, such as a class and
its probability.`,
		Example: "  ringtrain predict run1 --data mnist:DIR\n  ringtrain predict run1 scans/ --json\n  ringtrain predict run1 - --input-format npy < images.npy",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("predict needs a CHECKPOINT")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.checkpoint, f.files = args[0], args[1:]
			if err := checkEmpty(cmd.Flags(), "data", "input-format"); err != nil {
				return usage(err)
			}
			if err := f.check(cmd.Flags().Changed, a.catalog); err != nil {
				return err
			}
			return a.predict(context.Background(), f, cmd.InOrStdin())
		},
	}
	cmd.Flags().StringVar(&f.data, "data", "", "rows to predict instead of FILEs: `SOURCE` is "+a.catalog.TestUsage(false)+" (default the rows that train evaluated on)")
	_ = cmd.RegisterFlagCompletionFunc("data", cobra.FixedCompletions(dataNames(a.catalog, func(k catalog.DataKind) bool { return k.Test != nil || k.Input != nil }), cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace)) // fails for a flag that is not there
	cmd.Flags().StringVar(&f.inputFormat, "input-format", "", "read FILEs and stdin as `FORMAT`: "+strings.Join(a.catalog.InputFormats(), ", "))
	cmd.Flags().StringVar(&f.format, "format", "table", "print `FORM`: table, json (an object per line) or csv (with a header)")
	cmd.Flags().BoolVar(&f.json, "json", false, "the same as --format json")
	addBest(cmd, &f.best)
	return cmd
}

// dataNames returns how the names of usable kinds of data begin.
func dataNames(c *catalog.Catalog, usable func(catalog.DataKind) bool) []string {
	var out []string
	for _, kind := range c.DataKinds() {
		k, _ := c.DataKind(kind)
		if strings.Contains(k.Usage, ":") {
			kind += ":"
		}
		if usable(k) {
			out = append(out, kind)
		}
	}
	return out
}

// check checks arguments and flags by themselves.
func (f *predictFlags) check(given func(string) bool, c *catalog.Catalog) error {
	formats := strings.Join(c.InputFormats(), ", ")
	stdin := false
	for _, name := range f.files {
		stdin = stdin || name == catalog.StreamName
	}
	switch {
	case f.json && given("format") && f.format != "json":
		return usagef("--json cannot be combined with --format %s: give one of them", f.format)
	case f.format != "table" && f.format != "json" && f.format != "csv":
		return usagef("--format must be table, json or csv, not %q", f.format)
	case given("data") && len(f.files) > 0:
		return usagef("--data cannot be combined with FILE %s: give one of them", f.files[0])
	case stdin && len(f.files) > 1:
		return usagef("- (stdin) cannot be combined with other FILEs")
	case stdin && f.inputFormat == "":
		return usagef("stdin has no name that tells its format: give --input-format, one of %s", formats)
	case given("input-format") && len(f.files) == 0:
		return usagef("--input-format needs a FILE, or - for stdin")
	}
	if f.json {
		f.format = "json"
	}
	return nil
}

func (a *app) predict(ctx context.Context, f predictFlags, stdin io.Reader) error {
	backend := cpu.New(cpu.Options{})
	defer backend.Close()
	t, err := a.rows(ctx, backend, f, stdin)
	if err != nil {
		return usage(err)
	}
	warn(a.stderr, t.Warnings)
	predictor, err := t.Predictor()
	if err != nil {
		return usage(err)
	}
	show := printers[f.format](a.stdout)
	for p, err := range predictor.All(ctx) {
		if err != nil {
			return err
		}
		if err := show(p); err != nil {
			return err
		}
	}
	warn(a.stderr, t.Late())
	return a.stdout.failure()
}

// warn shows mistakes in data that do not prevent its use.
func warn(stderr io.Writer, warnings []string) {
	for _, w := range warnings {
		fmt.Fprintf(stderr, "ringtrain: warning: %s\n", w)
	}
}

// rows loads the weights and finds the rows.
func (a *app) rows(ctx context.Context, backend nn.Backend, f predictFlags, stdin io.Reader) (*job.Loaded, error) {
	l := a.loader(backend, f.best)
	switch {
	case len(f.files) == 0:
		return l.Load(ctx, f.checkpoint, f.data, false)
	case f.files[0] == catalog.StreamName:
		return l.LoadInput(ctx, f.checkpoint, f.inputFormat, catalog.Input{Stream: stdin})
	}
	return l.LoadInput(ctx, f.checkpoint, f.inputFormat, catalog.Input{Files: f.files})
}

// printers make functions that write one prediction, by --format.
var printers = map[string]func(w io.Writer) func(p catalog.Prediction) error{
	"table": func(w io.Writer) func(p catalog.Prediction) error {
		return func(p catalog.Prediction) error {
			var texts []string
			for _, f := range p {
				if !f.Extra {
					texts = append(texts, f.Text)
				}
			}
			_, err := fmt.Fprintln(w, strings.Join(texts, " "))
			return err
		}
	},
	"json": func(w io.Writer) func(p catalog.Prediction) error {
		return func(p catalog.Prediction) error {
			line, err := p.MarshalJSON()
			if err == nil {
				_, err = fmt.Fprintf(w, "%s\n", line)
			}
			return err
		}
	},
	"csv": csvPrinter,
}

// csvPrinter writes the names of the fields before the first row. Numbers have all their
// digits.
func csvPrinter(w io.Writer) func(p catalog.Prediction) error {
	table, begun := csv.NewWriter(w), false
	return func(p catalog.Prediction) error {
		var names, values []string
		for _, f := range p {
			if f.Extra {
				continue
			}
			names = append(names, f.Name)
			text, isText := f.Value.(string)
			if !isText {
				value, err := json.Marshal(f.Value)
				if err != nil {
					return err
				}
				text = string(value)
			}
			values = append(values, text)
		}
		if !begun {
			begun = true
			_ = table.Write(names) // Flush keeps its error
		}
		_ = table.Write(values)
		table.Flush()
		return table.Error()
	}
}

// addBest adds --best to a command that reads trained weights.
func addBest(cmd *cobra.Command, best *bool) {
	cmd.Flags().BoolVar(best, "best", false, "use the weights of the best evaluation instead of the last")
}

// loader returns a Loader of trained weights for a backend: the last or the best.
func (a *app) loader(backend nn.Backend, best bool) *job.Loader {
	return &job.Loader{Catalog: a.catalog, Backend: backend, Cache: a.cache(), Best: best}
}

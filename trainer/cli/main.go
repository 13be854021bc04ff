package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/build"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2   // wrong usage, config or data, found before anything starts
	exitTerminated  = 75  // SIGTERM, SIGHUP: stopped in order, please requeue (EX_TEMPFAIL)
	exitInterrupted = 130 // Ctrl-C
)

// app is one run of the command.
type app struct {
	catalog   *catalog.Catalog
	stdout    *output
	stderr    io.Writer
	args      []string // as the user gave them
	overrides []config.Override

	kept    *job.Cache   // see cache
	process crew.Process // of commands that have workers
	shape   []string     // flags that tell workers how many they are, if another launcher knows
}

// Main runs a command line (without the program's name) and returns the exit
// code. Results go to stdout, everything else to stderr.
func Main(c *catalog.Catalog, args []string, stdout, stderr io.Writer) int {
	results := &output{w: stdout}
	a := &app{catalog: c, stdout: results, stderr: stderr, args: args}
	root := a.root()
	rest, overrides, err := split(root, args)
	if err == nil {
		err = checkTilde(args)
	}
	if err != nil {
		return a.exit(usage(err))
	}
	a.overrides = overrides
	root.SetArgs(append([]string{}, rest...)) // not nil, for which cobra takes those of the process
	root.SetOut(results)
	root.SetErr(stderr)
	strict(root) // after that, for what it adds writes where the root does now
	err = root.Execute()
	if lost := results.failure(); err == nil && lost != nil {
		err = fmt.Errorf("writing results: %w", lost)
	}
	return a.exit(err)
}

// split takes the overrides of a config from a command line. Other commands keep all words: one
// that looks like an override may be the value of a flag.
func split(root *cobra.Command, args []string) (rest []string, overrides []config.Override, err error) {
	if cmd, _, err := root.Find(args); err == nil && cmd.Annotations[readsConfig] == "" {
		return args, nil, nil
	}
	return config.SplitOverrides(args, nil)
}

// An output is stdout. It keeps the first error, so that a command whose results were lost
// fails.
type output struct {
	w io.Writer

	mu  sync.Mutex
	err error
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	if err != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.err = cmp.Or(o.err, err)
	}
	return n, err
}

// columns returns the width of the terminal, or 80 if stdout is none.
func (o *output) columns() int {
	if file, ok := o.w.(*os.File); ok {
		return columns(file)
	}
	return 80
}

func (o *output) failure() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "ringtrain",
		Short: "Train neural networks on many machines at once",
		Long: `ringtrain trains one model in several processes. Each process holds a full copy of the
model, learns from its own rows, and combines its gradients with the others' by ring
allreduce. The processes find each other by gossip.`,
		Version:       build.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return checkPaths(cmd.Flags()) }
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { writeHelp(cmd.OutOrStdout(), cmd, a.stdout.columns()) })
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usage(flagError(cmd, err)) })
	root.AddCommand(overridable(trainCommand(a)), evalCommand(a), predictCommand(a), sampleCommand(a), overridable(estimateCommand(a)), configCommand(a), dataCommand(a), keygenCommand(a), benchCommand(a), overridable(simulateCommand(a)), tuneCommand(a),
		membersCommand(a), statusCommand(a), strategyCommand(a), storeCommand(a), doctorCommand(a), versionCommand(a))
	complete(root, a.catalog)
	return root
}

// exit prints the error, if it has a text, in one line and returns the exit code.
func (a *app) exit(err error) int {
	said := err
	var coded *codedError
	var end *crew.EndError
	var wrong *crew.UsageError
	switch {
	case errors.As(err, &coded):
		said = coded.err
	case errors.As(err, &end):
		said = end.Err
	case errors.As(err, &wrong):
		said = wrong
	case unknownCommand(err):
		said = commandError(a.root(), err)
	}
	if said != nil {
		fmt.Fprintf(a.stderr, "ringtrain: %v\n", said)
	}
	return codeOf(err)
}

// codeOf returns the exit code for an error.
func codeOf(err error) int {
	var coded *codedError
	var end *crew.EndError
	var wrong *crew.UsageError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &end):
		return exitCode(end)
	case errors.As(err, &wrong), unknownCommand(err):
		return exitUsage
	}
	return exitFailed
}

// unknownCommand reports whether an error is cobra's about the command line.
func unknownCommand(err error) bool {
	return err != nil && (strings.HasPrefix(err.Error(), "unknown command") || strings.HasPrefix(err.Error(), "accepts "))
}

// exitCode returns the exit code of a command whose job has ended. After SIGTERM it must not
// claim that everything was saved if it was not. After Ctrl-C it always says so.
func exitCode(end *crew.EndError) int {
	switch {
	case end.Signal == os.Interrupt:
		return exitInterrupted
	case end.Signal != nil && end.Err == nil && !end.Forced:
		return exitTerminated
	case end.Usage && end.Signal == nil:
		return exitUsage
	}
	return exitFailed
}

// A codedError is an error with its exit code. err is nil if the user has been told
// everything.
type codedError struct {
	code int
	err  error
}

func (e *codedError) Error() string { return fmt.Sprint(e.err) }
func (e *codedError) Unwrap() error { return e.err }

// usage marks err as a mistake of the user: exit code 2.
func usage(err error) error { return crew.Usage(err) }

func usagef(format string, args ...any) error { return crew.Usagef(format, args...) }

// countOf formats a number of things: "1 worker", "4 workers".
func countOf(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// cache holds generated data.
func (a *app) cache() *job.Cache {
	if a.kept == nil {
		a.kept = &job.Cache{Stderr: a.stderr, Quiet: a.process.Follows()}
	}
	return a.kept
}

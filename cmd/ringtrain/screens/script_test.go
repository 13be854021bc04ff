package screens

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/cli"
)

// TestMain lets the test binary be the ringtrain command in scripts.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"ringtrain": func() {
		os.Exit(cli.Main(catalog.New(), os.Args[1:], os.Stdout, os.Stderr))
	}})
}

// TestScreens compares what users see, whole screens of it, with the scripts in
// testdata/script. Set UPDATE_SCREENS=1 to write what is seen into the scripts, and
// read the difference.
func TestScreens(t *testing.T) {
	examples, err := filepath.Abs("../../../examples")
	require.NoError(t, err)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       os.Getenv("UPDATE_SCREENS") != "",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Deadline:            time.Now().Add(time.Minute), // a command that hangs is killed then
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"mask": mask, "refused": refused, "training": training, "ends": ends},
		Setup: func(env *testscript.Env) error {
			env.Setenv("EXAMPLES", examples)
			env.Setenv("XDG_RUNTIME_DIR", env.WorkDir)            // the list of running jobs
			env.Setenv("RINGTRAIN_CALIBRATION", "off,chunk=128K") // trial calls and caches differ from machine to machine
			env.Setenv("XDG_CACHE_HOME", filepath.Join(env.WorkDir, "cache"))
			env.Values[theJob], env.Values[theVars] = new(*running), &env.Vars
			return nil
		},
	})
}

// mask FILE RESULT copies a screen without what differs from run to run.
func mask(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mask FILE RESULT")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(masked(ts, ts.ReadFile(args[0]))), 0o644))
}

func masked(ts *testscript.TestScript, text string) string {
	for _, v := range varying(ts) {
		text = v.found.ReplaceAllString(text, v.shown)
	}
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if tableRow.MatchString(line) {
			lines[i] = maskRow(line)
		}
		if strings.HasPrefix(line, "system ") { // headings are as wide as measurements below them
			lines[i] = strings.Join(strings.Fields(line), " ") + "\n"
		}
	}
	return strings.Join(lines, "")
}

// refused ARGS... runs a command that must end with exit code 2, one line and
// nothing on stdout, and adds both to the file "refusals".
func refused(ts *testscript.TestScript, neg bool, args []string) {
	err := ts.Exec("ringtrain", args...)
	var code *exec.ExitError
	said := ts.ReadFile("stderr")
	if neg || !errors.As(err, &code) || code.ExitCode() != 2 || strings.Count(said, "\n") != 1 || ts.ReadFile("stdout") != "" {
		ts.Fatalf("ringtrain %s: %v, said %q", strings.Join(args, " "), err, said)
	}
	f, err := os.OpenFile(ts.MkAbs("refusals"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	ts.Check(err)
	_, err = f.WriteString(masked(ts, "$ ringtrain "+strings.Join(args, " ")+"\n"+said))
	ts.Check(errors.Join(err, f.Close()))
}

// A variation is what one run shows so and another otherwise.
type variation struct {
	found *regexp.Regexp
	shown string
}

func varying(ts *testscript.TestScript) []variation {
	host, err := os.Hostname()
	ts.Check(err)
	host, _, _ = strings.Cut(host, ".")
	var all []variation
	for _, v := range [][2]string{
		{regexp.QuoteMeta(ts.Getenv("WORK")), "WORK"},
		{regexp.QuoteMeta(ts.Getenv("EXAMPLES")), "EXAMPLES"},
		{`[0-9a-f]{64}`, "SHA256"},
		{`ringtrain-[0-9a-f]{8}`, "ringtrain-ID"},
		{regexp.QuoteMeta(host) + `-[0-9a-f]{6}`, "NODE"},
		{`127\.0\.0\.1:\d+`, "127.0.0.1:PORT"},
		{`job [0-9a-f]{16}`, "job JOB"},
		{`"job":"[0-9a-f]{16}"`, `"job":"JOB"`},
		{`\[::1\]:\d+`, "[::1]:PORT"},
		{`(?m)^matrix products: .*`, "matrix products: PRODUCTS"},
		{`(?m)^(# Avg bus bandwidth    : ).*`, "${1}#"},
		{`"blas":"[^"]*"`, `"blas":"PRODUCTS"`},
		{`(accuracy|bits_per_character) [\d.]+`, "$1 #"},
		{`loss [\d.]+`, "loss #"},
		{`(?m)^( +\d+ .*\d)  \*$`, "$1"}, // the best row so far, which the library for products may change
		{`,"best":true(,"seconds")`, "$1"},
		{`"best_step":\d+`, `"best_step":#`},
		{`"best_value":[\d.]+`, `"best_value":#`},
		{`(?m)^best \(\*\): .*\n`, ""},
		{`in [\d.]+ s \(\d+ samples/s\)`, "in # s (# samples/s)"},
		{`(?m)^(date|host): .*`, "$1: #"},
		{`(?m)^(ringtrain) \(.*\)$`, "$1 #"}, // of doctor
		{`(?m)^(revision|go|tags|wire|kernel|cores|memory|SIMD|products|clock|GPU)( +).*`, "$1$2#"},
		{`(?m)^(network +)(.*\n)(network .*\n)*`, "$1#\n"},
		{`(?m)^(allreduce +\d+ ).*`, "$1#"}, // of bench scaling
		{`(?m)^core-bound: (.+\n)+\n`, ""},  // depends on how busy the machine is
		{`[\d.]+ s, [\d.]+ ms/step`, "# s, # ms/step"},
		{`"(loss|accuracy|value|seconds|samples_per_second|\w+_ms)":[\d.e+-]+`, `"$1":#`},
	} {
		all = append(all, variation{regexp.MustCompile(v[0]), v[1]})
	}
	return all
}

// tableRow matches a row of a table: it begins with a number in a column.
var tableRow = regexp.MustCompile(`^#? +\d+ .*\n`)

// measured matches what a table shows of measurements, with the space before it:
// fractions, percentages and large numbers; behind the first, smaller ones, too.
var (
	measured = regexp.MustCompile(` +\d+(\.\d+|%)| +\d{4,}`)
	behind   = regexp.MustCompile(` +\d{3,}`)
)

// maskRow masks measurements and keeps the columns.
func maskRow(row string) string {
	hide := func(cell string) string { return strings.Repeat(" ", len(cell)-1) + "#" }
	row = measured.ReplaceAllStringFunc(row, hide)
	if i := strings.Index(row, " #"); i > 0 {
		row = row[:i] + behind.ReplaceAllStringFunc(row[i:], hide)
	}
	return row
}

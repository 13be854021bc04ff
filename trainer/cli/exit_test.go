package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/checkpoint"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

// SIGTERM is no failure if everything was saved. Ctrl-C always has its own exit code.
// An error that was already shown is not shown again.
func TestExitCodes(t *testing.T) {
	lost := errors.New("lost the weights")
	for _, c := range []struct {
		err  error
		code int
		text string
	}{
		{nil, exitOK, ""},
		{errors.New("any"), exitFailed, "any"},
		{usagef("--x is wrong"), exitUsage, "--x is wrong"},
		{fmt.Errorf("around: %w", usagef("--x is wrong")), exitUsage, "--x is wrong"},
		{errors.New("unknown command \"x\"\nfor ringtrain"), exitUsage, `unknown command "x" for ringtrain`},
		{&codedError{code: exitTerminated}, exitTerminated, ""},
		{&crew.EndError{Signal: os.Interrupt}, exitInterrupted, ""},
		{&crew.EndError{Signal: os.Interrupt, Err: lost}, exitInterrupted, "lost the weights"},
		{&crew.EndError{Signal: syscall.SIGTERM}, exitTerminated, ""},
		{&crew.EndError{Signal: syscall.SIGTERM, Err: lost}, exitFailed, "lost the weights"},
		{&crew.EndError{Signal: syscall.SIGTERM, Forced: true}, exitFailed, ""},
		{&crew.EndError{Signal: syscall.SIGTERM, Err: lost, Usage: true}, exitFailed, "lost the weights"},
		{&crew.EndError{Err: lost}, exitFailed, "lost the weights"},
		{&crew.EndError{Err: lost, Usage: true}, exitUsage, "lost the weights"},
		{&crew.EndError{Err: usagef("of one rank")}, exitFailed, "of one rank"},
		{&crew.EndError{}, exitFailed, ""},
	} {
		var stderr bytes.Buffer
		a := &app{stderr: &stderr, catalog: catalog.New()}
		require.Equal(t, c.code, a.exit(c.err), "%#v", c.err)
		if c.text != "" {
			c.text = "ringtrain: " + c.text + "\n"
		}
		require.Equal(t, c.text, stderr.String())
	}
}

// The hint names a command that ringtrain accepts, even if --out was that of --resume.
func TestResumeHint(t *testing.T) {
	out, spare := t.TempDir(), t.TempDir()
	for step, want := range []struct{ dir, hint string }{{out, "--resume " + out}, {spare, "--out " + out + " --resume " + spare}} {
		_, err := checkpoint.Writer{}.Write(want.dir, checkpoint.Training{Step: step})
		require.NoError(t, err)
		var stderr bytes.Buffer
		a := &app{stderr: &stderr, catalog: catalog.New()}
		f := job.NewSpec(nil, "")
		f.Saving = job.Saving{Dir: out, Fallback: spare}
		require.Error(t, a.withHint(&job.Training{Spec: f}, &crew.EndError{Begun: true, Signal: os.Interrupt}))
		require.Equal(t, fmt.Sprintf("ringtrain: to resume from step %d, repeat the command with %s\n", step, want.hint), stderr.String())
	}
}

// A program that makes a Spec gets what "ringtrain train" does without flags.
func TestFlagsHaveTheDefaultsOfASpec(t *testing.T) {
	var f trainFlags
	f.register(&cobra.Command{}, catalog.New())
	require.Equal(t, job.NewSpec(nil, ""), f.Spec)
	require.NoError(t, f.Spec.Check())
}

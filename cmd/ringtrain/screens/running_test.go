package screens

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
)

// A running is a job that a script has started and looks at.
type running struct {
	cmd   *exec.Cmd
	news  bytes.Buffer
	ended chan struct{} // stdout is at its end
}

// theJob is the key of a script's *running, theVars that of its environment.
const (
	theJob  = "job"
	theVars = "vars"
)

// training ARGS... starts "ringtrain train ARGS... --json" and returns when it has done
// a step. A script has one at a time.
func training(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("usage: training ARGS...")
	}
	r := &running{cmd: exec.Command("ringtrain", append(append([]string{"train"}, args...), "--json")...), ended: make(chan struct{})}
	r.cmd.Dir, r.cmd.Env, r.cmd.Stderr = ts.MkAbs("."), *ts.Value(theVars).(*[]string), &r.news
	stdout, err := r.cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(r.cmd.Start())
	*ts.Value(theJob).(**running) = r
	ts.Defer(func() { _ = r.cmd.Process.Kill() }) // in vain if it has ended
	stepped := make(chan struct{})
	go func() {
		defer close(r.ended)
		steps := 0
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			if bytes.HasPrefix(lines.Bytes(), []byte(`{"event":"step"`)) {
				if steps++; steps == 1 {
					close(stepped)
				}
			}
		}
	}()
	select {
	case <-stepped:
	case <-r.ended:
		_ = r.cmd.Wait()
		ts.Fatalf("the training ended before its first step: %s", r.news.String())
	}
}

// ends SIGNAL CODE FILE sends the training a signal, TERM or INT, or kills its worker
// of rank 1 for KILL1. It must end with an exit code, and what it said on stderr goes
// into the file.
func ends(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: ends TERM|INT|KILL1 CODE FILE")
	}
	r := *ts.Value(theJob).(**running)
	switch args[0] {
	case "TERM":
		ts.Check(r.cmd.Process.Signal(syscall.SIGTERM))
	case "INT":
		ts.Check(r.cmd.Process.Signal(os.Interrupt))
	default:
		ts.Check(ts.Exec("ringtrain", "status", "--json"))
		var job struct{ Ranks []struct{ PID int } }
		ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &job))
		worker, err := os.FindProcess(job.Ranks[1].PID)
		ts.Check(err)
		ts.Check(worker.Kill())
	}
	<-r.ended
	_ = r.cmd.Wait() // the code tells
	if got := strconv.Itoa(r.cmd.ProcessState.ExitCode()); got != args[1] {
		ts.Fatalf("exit code %s, not %s: %s", got, args[1], r.news.String())
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(masked(ts, stepless(r.news.String()))), 0o644))
}

// stepNumbers matches numbers of steps, and names of files that have them.
var stepNumbers = regexp.MustCompile(`(step[s-]? ?|after )\d+`)

// stepless is a text without the numbers of steps, which depend on when a job was stopped.
func stepless(text string) string {
	return stepNumbers.ReplaceAllString(text, "${1}#")
}

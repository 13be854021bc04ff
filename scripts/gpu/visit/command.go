package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

// A command is a program to run, and all processes that it starts.
type command struct {
	name  string // of its log
	dir   string
	env   []string // added to the runner's
	args  []string
	limit time.Duration // 0 means the rest of the step's time, which is always a limit
}

// An outcome is how a command ended.
type outcome struct {
	log  string // file
	text string // the log, see readLog
	err  error  // nil if the exit code is 0
	late bool   // it was killed at its time limit
	took time.Duration
	had  time.Duration // time limit
}

// problem describes in a few words how the command failed, or returns "".
func (o outcome) problem() string {
	var exit *exec.ExitError
	switch {
	case o.err == nil:
		return ""
	case o.late:
		return fmt.Sprintf("killed after %.0f s, its time limit", o.had.Seconds())
	case errors.As(o.err, &exit):
		return exit.String()
	}
	return o.err.Error()
}

// A runner runs commands, each within the time of the current step.
type runner struct {
	settings
	ctx   context.Context
	work  string       // temporary directory of this visit
	env   []string     // of all commands
	until time.Time    // the end of the current step
	logs  atomic.Int64 // number of logs
}

func newRunner(ctx context.Context, s settings, work string) *runner {
	env := append(os.Environ(),
		"RINGTRAIN_REQUIRE_GPU=1", // without a GPU tests fail instead of skipping
		// All commands share caches of compiled kernels and of data, and do not use the user's.
		"XDG_CACHE_HOME="+filepath.Join(work, "cache"),
		"TORCHINDUCTOR_CACHE_DIR="+filepath.Join(work, "cache", "torch"), "TRITON_CACHE_DIR="+filepath.Join(work, "cache", "triton"),
		"CUDA_CACHE_PATH="+filepath.Join(work, "cache", "nv"), "PYTHONDONTWRITEBYTECODE=1",
	)
	return &runner{settings: s, ctx: ctx, work: work, env: env}
}

// execute runs a command in its own session. At the time limit it sends SIGQUIT, which makes
// Go programs print where they hang, and then kills the session.
func (r *runner) execute(c command) (o outcome) {
	begin := time.Now()
	// Ending it also takes time from the step.
	if o.had = max(r.left()-2*r.grace, r.left()/2); c.limit > 0 {
		o.had = min(o.had, c.limit)
	}
	o.log = r.logFile(c.name)
	file, err := create(o.log)
	if err != nil {
		return outcome{err: err}
	}
	defer file.Close()
	fmt.Fprintf(file, "$ %s\n", strings.Join(c.args, " "))
	if o.had <= 0 {
		return outcome{err: errors.New("no time left"), log: o.log}
	}
	cmd := exec.Command(c.args[0], c.args[1:]...)
	cmd.Dir = c.dir
	r.prepare(cmd, file, c.env...)
	if o.err = cmd.Start(); o.err == nil {
		o.late, o.err = r.await(cmd, o.had)
	}
	o.took = time.Since(begin)
	if problem := o.problem(); problem != "" {
		fmt.Fprintf(file, "\n%s\n", problem)
	}
	o.text = readLog(o.log)
	return o
}

// mark is an environment variable that identifies all processes of a command.
const mark = "RINGTRAIN_VISIT_COMMAND"

// prepare sets a command's environment, session and log. The log is a file, because with a
// pipe Wait would also wait for processes that the command leaves behind.
func (r *runner) prepare(cmd *exec.Cmd, log *os.File, env ...string) {
	cmd.Env = append(append(r.env[:len(r.env):len(r.env)], mark+"="+log.Name()), env...)
	cmd.Stdout, cmd.Stderr = log, log
	ownSession(cmd)
}

// await waits until the command ends, the limit is over, or the visit is interrupted.
func (r *runner) await(cmd *exec.Cmd, limit time.Duration) (late bool, err error) {
	ended := make(chan error, 1) // buffered, because await gives up on a process that cannot be killed
	go func() { ended <- cmd.Wait() }()
	defer killAll(cmd)
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-ended:
		return false, err
	case <-r.ctx.Done():
		err = errors.New("interrupted")
	case <-timer.C:
		late, err = true, errors.New("late")
	}
	for _, end := range []func(*exec.Cmd){askToQuit, killAll} {
		end(cmd)
		select {
		case <-ended:
			return late, err
		case <-time.After(r.grace):
		}
	}
	return late, errors.New("it hangs and cannot be killed")
}

// left returns the time left for the running step.
func (r *runner) left() time.Duration { return time.Until(r.until) }

// program returns the path of one of the visit's binaries.
func (r *runner) program(name string) string { return filepath.Join(r.binaries, name) }

// setting returns the value of a variable in the commands' environment.
func (r *runner) setting(name string) string {
	for i := len(r.env) - 1; i >= 0; i-- {
		if value, found := strings.CutPrefix(r.env[i], name+"="); found {
			return value
		}
	}
	return ""
}

// logFile returns the path of the next log.
func (r *runner) logFile(name string) string {
	return filepath.Join(r.logsDir(), fmt.Sprintf("%03d-%s.log", r.logs.Add(1), name))
}

func (r *runner) logsDir() string { return filepath.Join(r.work, "logs") }

func create(path string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return os.Create(path)
}

// Sizes of the head and the tail of a long log. The rest is neither read nor archived.
const (
	headBytes = 3 << 20
	tailBytes = 1 << 20
)

// readLog returns a log, without its middle if it is long. If reading fails, it returns what
// it could read, or the error.
func readLog(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	head, _ := io.ReadAll(io.LimitReader(file, headBytes))
	info, err := file.Stat()
	if err != nil || info.Size() <= headBytes {
		return string(head)
	}
	from := max(headBytes, info.Size()-tailBytes)
	tail, _ := io.ReadAll(io.NewSectionReader(file, from, tailBytes))
	if from == headBytes {
		return string(head) + string(tail)
	}
	return fmt.Sprintf("%s\n[%d bytes omitted]\n%s", head, from-headBytes, tail)
}

package launch

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// A Process is one worker of a Job. Its methods are safe for concurrent use.
type Process struct {
	name     string
	cmd      *exec.Cmd
	group    *group
	lifeline *os.File // the write end: closed when the worker is gone, or by the kernel when this process dies
	output   output

	done chan struct{}
	exit Exit // written before done is closed
}

// Name returns the name of the worker in reports.
func (p *Process) Name() string { return p.name }

// Pid returns the process id, which is also the id of the process group.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done returns a channel that is closed when the worker has ended and all its output has
// been delivered.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit returns how the worker ended. ok is false until Done is closed.
func (p *Process) Exit() (e Exit, ok bool) {
	select {
	case <-p.done:
		return p.exit, true
	default:
		return Exit{}, false
	}
}

// start starts the process and the readers of its output. The calling thread must outlive
// the process; see attributes.
func (c Command) start(o Options) (*Process, error) {
	name := c.Name
	if name == "" {
		name = c.Path
	}
	p := &Process{name: name, cmd: exec.Command(c.Path, c.Args...), done: make(chan struct{})}
	p.cmd.Dir = c.Dir
	p.cmd.Env = append(os.Environ(), c.Env...)
	p.cmd.SysProcAttr = attributes()

	pipes, err := p.connect()
	if err != nil {
		return nil, fmt.Errorf("creating pipes for %s: %w", name, advise(err))
	}
	defer pipes.closeTheirs()
	start := p.cmd.Start
	if c.place != nil {
		start = func() error { return c.place(p.cmd.Start) }
	}
	if err := start(); err != nil {
		if p.cmd.Process != nil { // started, but the thread could not leave its namespace
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
		pipes.closeOurs()
		return nil, fmt.Errorf("start %s: %w", name, advise(err))
	}
	if p.group, err = newGroup(p.cmd.Process); err != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		pipes.closeOurs()
		return nil, fmt.Errorf("taking control of %s: %w", name, err)
	}
	p.lifeline = pipes.ours[lifelinePipe]
	p.output.tail.max = o.Tail
	p.output.follow(pipes.ours[stdoutPipe], o.MaxLine, orDiscard(c.Stdout))
	p.output.follow(pipes.ours[stderrPipe], o.MaxLine, func(line []byte) {
		p.output.tail.add(line)
		orDiscard(c.Stderr)(line)
	})
	return p, nil
}

// await returns how the process ended, after killing the rest of its process group. It is
// called once.
func (p *Process) await() (code int, sig syscall.Signal) {
	err := p.group.wait(p.cmd)
	_ = p.lifeline.Close()
	state := p.cmd.ProcessState
	if state == nil { // another part of this program reaped it, so its status is lost
		p.output.note("cannot tell how this process ended: " + err.Error())
		return -1, 0
	}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		sig = status.Signal()
	}
	return state.ExitCode(), sig
}

func orDiscard(emit func([]byte)) func([]byte) {
	if emit == nil {
		return func([]byte) {}
	}
	return emit
}

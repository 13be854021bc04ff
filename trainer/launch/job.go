package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Errors of Job's methods.
var (
	// ErrEnding is returned by Run once the job has started to end: a worker failed, Stop
	// was called, or the context is done.
	ErrEnding = errors.New("launch: the job is ending")
	// ErrOver is returned when Wait has returned or is about to return.
	ErrOver = errors.New("launch: the job is over")
	// ErrStopped is the Cause of a job that was stopped without a given cause.
	ErrStopped = errors.New("launch: stopped")
)

// A Job is a set of worker processes that end together. Its methods are safe for
// concurrent use. The caller of Start must call Wait.
type Job struct {
	options Options
	begin   time.Time

	calls   chan func() // run by the loop, which owns the fields below
	done    chan struct{}
	exits   chan ended
	waiters sync.WaitGroup // one waiter per process

	watch   watch
	running []*Process // by worker number
	open    int        // processes whose end has not been fully reported
	waited  bool       // Wait was called, so the loop ends when open is 0
	outcome Outcome    // written before done is closed
}

// ended is a waiter's report. A worker's end is reported twice: when it exits, so that
// the others' deadlines start, and when all of its output has been read.
type ended struct {
	id, code int
	sig      syscall.Signal
	at       time.Duration
	drained  bool
}

// Start begins a job without workers. When ctx is done, the job ends as with Stop, with
// the context's cause.
func Start(ctx context.Context, o Options) *Job {
	o = o.withDefaults()
	j := &Job{
		options: o,
		begin:   time.Now(),
		calls:   make(chan func()),
		done:    make(chan struct{}),
		exits:   make(chan ended),
		watch:   watch{grace: o.Grace, term: o.Term},
	}
	go j.loop(ctx)
	return j
}

// Run starts another worker. It fails with ErrEnding or ErrOver if the job no longer
// accepts workers, and with another error if the program cannot be started. A failed Run
// does not end the job; the caller may Stop it.
func (j *Job) Run(c Command) (p *Process, err error) {
	callErr := j.call(func() {
		if j.watch.phase != running {
			err = fmt.Errorf("%w: %s was not started", ErrEnding, c.Name)
			return
		}
		if p, err = c.start(j.options); err != nil {
			return
		}
		id := j.watch.started(p.name, p.Pid(), c.Spare)
		j.running = append(j.running, p)
		j.open++
		j.waiters.Go(func() { j.follow(id, p) })
	})
	if callErr != nil {
		return nil, callErr
	}
	return p, err
}

// Stop ends the job without waiting: it sends SIGTERM to every worker, and SIGKILL after
// Options.Term. cause, or ErrStopped if it is nil, becomes the Cause of the Outcome,
// unless all workers have already ended.
func (j *Job) Stop(cause error) {
	if cause == nil {
		cause = ErrStopped
	}
	_ = j.call(func() { j.send(j.watch.stop(j.now(), cause)) }) // fails only if the job is over
}

// Kill ends one worker of this job at once. Its exit counts as ByUs and Spared.
func (j *Job) Kill(p *Process) error {
	var err error
	callErr := j.call(func() {
		id := slices.Index(j.running, p)
		if id < 0 {
			err = errors.New("launch: cannot kill a process of another job")
			return
		}
		err = j.send(j.watch.kill(id))
	})
	return errors.Join(callErr, err)
}

// Signal sends sig to the process group of every live worker and sets no deadline. If sig
// asks a process to end (SIGTERM, SIGINT and the like), later exits count as ByUs and do
// not end the job.
func (j *Job) Signal(sig os.Signal) error {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("launch: cannot send %v: not a signal of this system", sig)
	}
	var err error
	callErr := j.call(func() { err = j.send(j.watch.signal(number)) })
	return errors.Join(callErr, err)
}

// Wait returns when every worker has ended, no process is left in their process groups,
// and their output has been delivered. Processes outside of the groups that hold the output
// open delay it by at most about 10 s. Call Run meanwhile only if another worker has not ended.
// To limit the wait, cancel the context passed to Start.
func (j *Job) Wait() Outcome {
	_ = j.call(func() { j.waited = true }) // fails on the second Wait, because the job is over
	<-j.done
	return j.outcome
}

// call runs f on the loop.
func (j *Job) call(f func()) error {
	carried := make(chan struct{})
	select {
	case j.calls <- func() { f(); close(carried) }:
		<-carried
		return nil
	case <-j.done:
		return ErrOver
	}
}

// loop owns the job's state. It stays locked to its thread, because Linux kills a worker
// when the thread that started it ends.
func (j *Job) loop(ctx context.Context) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(j.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	stopped := ctx.Done()
	for !j.waited || j.open > 0 {
		select {
		case f := <-j.calls:
			f()
		case e := <-j.exits:
			j.ended(e)
		case <-timer.C:
			j.send(j.watch.tick(j.now()))
		case <-stopped:
			stopped = nil
			j.send(j.watch.stop(j.now(), context.Cause(ctx)))
		}
		timer.Stop()
		if due, ok := j.watch.next(); ok {
			timer.Reset(due - j.now())
		}
	}
	j.waiters.Wait()
	j.outcome = j.watch.outcome(j.options.Window)
}

// ended handles a waiter's report.
func (j *Job) ended(e ended) {
	if !e.drained {
		j.send(j.watch.exited(e.at, e.id, e.code, e.sig))
		return
	}
	p := j.running[e.id]
	exit := &j.watch.workers[e.id].exit
	exit.LastLines = p.output.tail.lines
	p.exit = *exit
	close(p.done)
	j.open--
}

// follow reports the end of one process to the loop.
func (j *Job) follow(id int, p *Process) {
	code, sig := p.await()
	j.exits <- ended{id: id, code: code, sig: sig, at: j.now()}
	p.output.drain()
	j.exits <- ended{id: id, drained: true}
}

// send carries out the orders of the watch.
func (j *Job) send(orders []order) error {
	var errs []error
	for _, o := range orders {
		p := j.running[o.id]
		if err := p.group.signal(o.sig); err != nil {
			errs = append(errs, fmt.Errorf("signal %v to %s (pid %d): %w", o.sig, p.name, p.Pid(), err))
		}
	}
	return errors.Join(errs...)
}

func (j *Job) now() time.Duration { return time.Since(j.begin) }

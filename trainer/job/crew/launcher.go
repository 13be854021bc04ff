package crew

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// Patience of the launcher.
const (
	// graceTime is how long survivors may report after the first failure.
	graceTime = 1500 * time.Millisecond
	// termTime is how long a worker may take to end when told to.
	termTime = 500 * time.Millisecond
	// forceTime is how long after the second signal everything must be over,
	// even if nobody reads what there is to say.
	forceTime = 2 * time.Second
)

// A Crew is the workers of a job on this machine, which this process starts, supervises
// and ends together. They get their place through the environment.
type Crew struct {
	Workers int
	Cores   int                      // shared by the workers
	Threads int                      // least GOMAXPROCS of each worker
	Place   cluster.Config           // of the first worker
	Environ func(local int) []string // more environment variables of each worker; may be nil
	Network *launch.Network          // has a node for each worker; nil: they use the network of this machine
	Process Process                  // this process
	Args    []string                 // arguments of each worker, without the program's name
	Kinds   event.Table              // kinds of events that package event does not have
	Display Display                  // shows the job
	Signals <-chan os.Signal         // the first asks the workers to stop, the second ends them; may be nil

	Command  string // the command line as a user would type it, for the list of jobs
	Out      string // directory where the job saves, "" for none
	Stopping string // notice to the user at the first signal
	Announce bool   // tell the user where the job can be joined
	Verbatim bool   // show every event about a lost rank at once, not one line at the end
}

// A Display shows a job to the user. Its methods are called from any goroutine.
type Display interface {
	event.Sink
	Log(name string, line []byte) // shows a line of a worker or, without a name, of the launcher
	Notice(text string)           // shows a line without waiting, even if a write is stuck
}

// Launch starts the workers, shows what they say and waits for them. If the job fails
// after they have started, the error is an *EndError.
func (c Crew) Launch(ctx context.Context) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	c.Place.Cluster = cmp.Or(c.Place.Cluster, DefaultCluster)
	l := &launcher{
		Crew: c, exe: exe, show: c.Display, job: launch.Start(ctx, launch.Options{Grace: graceTime, Term: termTime}),
		ready: make(chan string, 1), forced: make(chan struct{}), running: map[string]*launch.Process{}, failures: map[string]event.Failed{},
	}
	defer l.end()
	kept := &losses{Display: c.Display}
	if !c.Verbatim {
		l.show = kept
	}
	if c.Process.Follows() {
		l.show = follower{l.show}
	}
	if c.Network == nil { // whose addresses are reached from inside alone
		size := c.Workers
		if c.Process.Launched != nil {
			size = 1
		}
		l.listing = newRegistered(c.Place, size, c.Command, c.Out, func(text string) { l.show.Log("", []byte(text)) })
		defer l.listing.end()
	}
	watch := WatchSignals(c.Signals, l.interrupt, l.kill)
	if err = l.start(ctx); err != nil {
		l.job.Stop(err)
	}
	over := make(chan launch.Outcome, 1)
	go func() { over <- l.job.Wait() }()
	select {
	case outcome := <-over:
		err = l.verdict(outcome, err, watch.End())
		for _, line := range kept.lines(err) {
			c.Display.Log("", []byte(line))
		}
		return err
	case <-l.forced: // the workers are gone, and their last words cannot be written
		return &EndError{Signal: watch.End(), Begun: true}
	}
}

type launcher struct {
	Crew
	exe     string
	job     *launch.Job
	show    Display
	listing *registered   // nil if the job is in no registry
	ready   chan string   // where the first worker gossips
	forced  chan struct{} // closed forceTime after the second signal

	mu       sync.Mutex
	running  map[string]*launch.Process // by name, but for those that have ended
	vigil    vigil                      // nil until the first signal has come
	failures map[string]event.Failed    // by the launch's name of the worker
	gossip   string                     // where the first worker gossips, once it is ready
	begun    bool                       // the workers have agreed who is in
	stopped  bool                       // the workers have said that they stopped
	asked    bool                       // the first signal has come: no more workers are started
	ending   bool                       // a worker has failed after that: the others have graceTime
	forcing  bool                       // the second has come: forced will be closed
	watching *time.Timer                // calls look
	over     bool                       // end was called
	timers   []*time.Timer
}

// hear takes a line of a worker's stdout.
func (l *launcher) hear(local int, line []byte) {
	name := workerName(local)
	heard := event.Decode(line, l.Kinds)
	if heard != nil {
		l.gotOn(name)
	}
	switch e := heard.(type) {
	case nil:
		l.show.Log(name, line)
	case *event.Progress: // no news for the user
	case *event.Ready:
		l.isReady(local, e.Addr)
	case *event.Failed:
		l.failed(name, *e)
	case *event.Stopped:
		l.mu.Lock()
		l.stopped = true
		l.mu.Unlock()
		l.show.Emit(e)
	default:
		l.mu.Lock()
		l.begun = true
		l.mu.Unlock()
		if view, ok := e.(*event.View); ok {
			l.locate(view)
		}
		l.show.Emit(e)
	}
}

// isReady takes where a worker gossips.
func (l *launcher) isReady(local int, addr string) {
	if l.listing != nil {
		l.listing.ready(local, addr)
	}
	if local != l.Place.Local {
		return // only the first is waited for
	}
	l.mu.Lock()
	l.gossip = addr
	l.mu.Unlock()
	if l.Announce && !l.Process.Follows() {
		l.show.Log("", []byte(l.announcement(addr)))
	}
	select {
	case l.ready <- addr:
	default: // it says so once
	}
}

// locate adds to a view where its job is found.
func (l *launcher) locate(e *event.View) {
	l.mu.Lock()
	e.Cluster, e.Gossip = l.Place.Cluster, l.gossip
	l.mu.Unlock()
	if l.listing != nil {
		l.listing.agreed(e.Job)
	}
}

// announcement says where the job is, to join it and to look at it. It is called
// before the other workers of this machine are told where to join.
func (l *launcher) announcement(addr string) string {
	text := fmt.Sprintf("job %s on %s, %s", l.Place.Cluster, addr, countOf(l.Workers, "worker"))
	if l.Place.Nodes > 1 {
		text += fmt.Sprintf(" here of %d machines", l.Place.Nodes)
		if len(l.Place.Join) == 0 && l.Process.Launched == nil {
			text += "; on the other machines: --join " + addr
		}
	}
	return text
}

// failed takes a worker's last word. One that fails after the first signal
// ends as it was asked to, so far as the job can see: here it is known that the
// others, one of which may be why, have no step to finish any more. Before the
// work has begun it is no failure: some leave while others look for them, and
// nothing is lost.
func (l *launcher) failed(name string, e event.Failed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.asked || l.begun {
		l.failures[name] = e
	}
	if l.asked && !l.ending {
		l.ending = true
		l.timers = append(l.timers, time.AfterFunc(graceTime, func() { l.job.Stop(errors.New(e.Error)) }))
	}
}

// gotOn notes that a worker makes progress.
func (l *launcher) gotOn(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.vigil != nil {
		l.vigil[name] = time.Now()
	}
}

// look ends workers that were asked to stop if one of them makes no progress, and
// else looks again later.
func (l *launcher) look() {
	l.mu.Lock()
	for name, p := range l.running {
		if _, ended := p.Exit(); ended {
			delete(l.running, name)
			delete(l.vigil, name)
		}
	}
	stuck := l.vigil.stuck(time.Now())
	if stuck == nil && !l.over {
		l.watching.Reset(beatEvery)
	}
	l.mu.Unlock()
	if stuck != nil {
		l.job.Stop(stuck)
	}
}

// interrupt asks the workers to stop after their step, and sees to it that
// they do. Like kill it waits for nothing, least of all for the terminal.
func (l *launcher) interrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = true
	_ = l.job.Signal(os.Interrupt)
	l.vigil = vigil{}
	for name := range l.running {
		l.vigil[name] = time.Now()
	}
	l.watching = time.AfterFunc(beatEvery, l.look)
	l.timers = append(l.timers, l.watching)
	l.show.Notice(l.Stopping)
}

// kill ends the workers at once.
func (l *launcher) kill() {
	l.job.Stop(ErrTwice)
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.forced:
	default:
		if !l.forcing { // not for a third signal
			l.forcing = true
			l.timers = append(l.timers, time.AfterFunc(forceTime, func() { close(l.forced) }))
		}
	}
}

func (l *launcher) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for _, t := range l.timers {
		t.Stop()
	}
}

// verdict is the error of the job: its root cause, in the words of the worker
// that knows it best, and the signal that came.
func (l *launcher) verdict(o launch.Outcome, startErr error, sig os.Signal) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if sig != nil {
		return l.afterSignal(o, sig)
	}
	err := o.Err()
	switch {
	case startErr != nil:
		return startErr
	case err == nil && l.stopped:
		return &EndError{Err: ErrElsewhere, Begun: true}
	case err == nil:
		return nil
	case o.Root == nil:
		return &EndError{Err: err, Begun: true}
	}
	if said, ok := l.failures[o.Root.Name]; ok {
		return &EndError{Err: &WorkerError{o.Root.Name, said}, Usage: said.Code == usageCode, Begun: l.begun}
	}
	return &EndError{Err: fmt.Errorf("%w; it was %s/%s", err, l.Place.Node, strings.TrimPrefix(o.Root.Name, "worker ")), Begun: true}
}

// afterSignal is the error of a job that was asked to stop. It is no failure,
// unless something went wrong on the way.
func (l *launcher) afterSignal(o launch.Outcome, sig os.Signal) error {
	end := &EndError{Signal: sig, Forced: errors.Is(o.Cause, ErrTwice), Begun: true}
	for _, exit := range o.Exits { // in the order of workers
		if said, ok := l.failures[exit.Name]; ok && end.Err == nil && !said.Early {
			end.Err = &WorkerError{exit.Name, said}
		}
	}
	if end.Err == nil && errors.Is(o.Cause, ErrTooSlow) {
		end.Err = o.Cause
	}
	return end
}

// countOf is a number of things: "1 worker", "4 workers".
func countOf(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

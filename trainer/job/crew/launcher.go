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

// Time limits of the launcher.
const (
	// graceTime is how long survivors have to report after the first failure.
	graceTime = 1500 * time.Millisecond
	// termTime is the time between SIGTERM and SIGKILL.
	termTime = 500 * time.Millisecond
	// forceTime is the most that a second signal waits for, even if the terminal
	// is stuck and the last lines cannot be written.
	forceTime = 2 * time.Second
)

// maxLine is the longest line of a worker's output, in bytes. A view of MaxRanks with long names
// has a few MiB, and a piece of an event cannot be decoded.
const maxLine = 16 << 20

// A Crew is the workers of a job on this machine, which this process starts, supervises
// and ends together.
type Crew struct {
	Workers int
	Servers int // processes after the workers that join as collective.Server
	// Restarts is how often, in all, servers of this machine that were killed by a signal are
	// started again. If it is not 0, workers call Partner, and Regroup when they lose a server.
	Restarts int
	// Survive says that workers can continue without others, but not without the first of the job.
	// One of them reports each loss as an event.Lost with Left.
	Survive bool
	Cores   int                      // shared by the workers
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
		Crew: c, exe: exe, show: c.Display, job: launch.Start(ctx, launch.Options{Grace: graceTime, Term: termTime, MaxLine: maxLine}),
		forced: make(chan struct{}), expendable: expendable{servers: servers{most: c.Restarts}}, joining: newJoining(), running: map[string]*launch.Process{}, failures: map[string]event.Failed{},
	}
	defer l.stopTimers()
	kept := &losses{Display: c.Display}
	if !c.Verbatim {
		l.show = kept
	}
	if c.Process.Follows() {
		l.show = follower{l.show}
	}
	if c.Network == nil { // members and status cannot reach addresses inside a Network
		size := c.Workers + c.Servers
		if c.Process.Launched != nil {
			size = 1
		}
		l.listing = newJobListing(c.Place, size, c.Command, c.Out, func(text string) { l.show.Log("", []byte(text)) })
		defer l.listing.end()
	}
	watch := WatchSignals(c.Signals, l.interrupt, l.kill)
	if err = l.startWorkers(ctx); err != nil {
		l.job.Stop(err)
	}
	l.watchSuspension()
	over := make(chan launch.Outcome, 1)
	go func() { over <- l.job.Wait() }()
	select {
	case outcome := <-over:
		l.exits.Wait()
		err = l.verdict(outcome, err, watch.End())
		for _, line := range kept.lines(err) {
			c.Display.Log("", []byte(line))
		}
		if err == nil {
			for _, exit := range l.survivors.unnamed() {
				c.Display.Log("", fmt.Appendf(nil, "warning: %v when its work was done", exit))
			}
		}
		return err
	case <-l.forced: // the workers are gone, and their last lines cannot be written
		return &EndError{Signal: watch.End(), Begun: true}
	}
}

// A launcher is a Crew while it runs. Its methods are called by the goroutines that read
// the workers' output, by timers and by the SignalWatch.
type launcher struct {
	Crew
	exe     string
	job     *launch.Job
	show    Display
	listing *jobListing   // nil if the job is in no registry
	forced  chan struct{} // closed forceTime after the second signal

	expendable
	mu sync.Mutex
	joining
	running  map[string]*launch.Process // by worker name; without those known to have ended
	watchdog watchdog                   // nil before the first signal
	failures map[string]event.Failed    // by worker name
	begun    bool                       // the workers have agreed on a view
	stopped  bool                       // the workers have reported that they stopped
	asked    bool                       // the first signal has come: start no more workers
	ending   bool                       // a worker has failed after it: the others have graceTime
	forcing  bool                       // the second signal has come: forced will be closed
	clocks
	suspension
}

// clocks are the timers of a launcher.
type clocks struct {
	watching *time.Timer // calls checkProgress
	timers   []*time.Timer
	over     bool // stopTimers was called
}

// expendable is what a job may lose.
type expendable struct {
	servers   servers
	survivors survivors
}

// onLine handles a line of a worker's stdout: an event, or text for the user.
func (l *launcher) onLine(local int, line []byte) {
	name := l.name(local)
	decoded := event.Decode(line, l.Kinds)
	if decoded != nil {
		l.noteProgress(name)
	}
	switch e := decoded.(type) {
	case nil:
		l.show.Log(name, line)
	case *event.Progress: // noted above; not shown
	case *event.Ready:
		l.onReady(local, e.Addr)
	case *event.Regrouped:
		l.onRegrouped(e)
	case *event.Failed:
		l.onFailed(name, *e)
	case *event.Lost:
		l.onLost(e)
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
			l.onView(view)
			l.survivors.begin()
			l.servers.regrouped(&event.Regrouped{}) // the first group is formed
		}
		l.show.Emit(e)
	}
}

// onView adds to a view what "ringtrain status" needs to find the job.
func (l *launcher) onView(e *event.View) {
	l.mu.Lock()
	e.Cluster, e.Gossip = l.Place.Cluster, l.gossip
	l.mu.Unlock()
	if l.listing != nil {
		l.listing.agreed(e.Job)
	}
}

// onFailed handles a worker's report that it failed.
//
// After the first signal, package launch takes any exit for an obedient one and lets the
// other workers run. But they can finish no more steps without the failed worker, so they
// get graceTime. A failure before the work began is not recorded then: workers that stop
// while others still look for them cause errors, and nothing is lost.
func (l *launcher) onFailed(name string, e event.Failed) {
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

// noteProgress resets a worker's time in the watchdog, if that watches it.
func (l *launcher) noteProgress(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, watched := l.watchdog[name]; watched {
		l.watchdog[name] = time.Now()
	}
}

// checkProgress stops the job if a worker that was asked to stop makes no progress, and
// otherwise calls itself again after reportEvery.
func (l *launcher) checkProgress() {
	l.mu.Lock()
	for name, p := range l.running {
		if _, ended := p.Exit(); ended {
			delete(l.running, name)
			delete(l.watchdog, name)
		}
	}
	stuck := l.watchdog.stuck(time.Now())
	if stuck == nil && !l.over {
		l.watching.Reset(reportEvery)
	}
	l.mu.Unlock()
	if stuck != nil {
		l.job.Stop(stuck)
	}
}

// interrupt asks the workers to stop after their step, and starts the watchdog. Like
// kill it never blocks, not even on a stuck terminal.
func (l *launcher) interrupt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = true
	_ = l.job.Signal(os.Interrupt)
	l.watchdog = watchdog{}
	for name := range l.running {
		l.watchdog[name] = time.Now()
	}
	l.watching = time.AfterFunc(reportEvery, l.checkProgress)
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
		if !l.forcing { // a third signal does not extend the time
			l.forcing = true
			l.timers = append(l.timers, time.AfterFunc(forceTime, func() { close(l.forced) }))
		}
	}
}

func (l *launcher) stopTimers() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	for _, t := range l.timers {
		t.Stop()
	}
}

// verdict returns the error of the job: its root cause, as reported by the worker
// that failed first, and the signal that came.
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
	case o.Root == nil && l.unjoined != nil:
		return &EndError{Err: l.unjoined, Begun: l.begun}
	case err == nil && l.stopped:
		return &EndError{Err: ErrElsewhere, Begun: true}
	case err == nil:
		return nil
	case o.Root == nil:
		return &EndError{Err: err, Begun: true}
	}
	root := o.Root.Name
	failure, ok := l.failures[root]
	if name, mistake := l.mistake(o.Exits); ok && mistake != nil {
		root, failure = name, *mistake
	}
	if dead := l.blamed(failure); dead != nil {
		err, root, ok = &launch.ExitError{Exit: *dead}, dead.Name, false
	}
	if ok {
		return &EndError{Err: &WorkerError{root, failure}, Usage: failure.Code == usageCode, Begun: l.begun}
	}
	kind, local, _ := strings.Cut(root, " ") // see name
	err = fmt.Errorf("%w; it was %s/%s", err, l.Place.Node, local)
	if kind == "server" && l.servers.exhausted() && o.Root.Signal != 0 {
		err = fmt.Errorf("%w, and servers had been started again as often as --max-restarts %d allows", err, l.Restarts)
	}
	return &EndError{Err: err, Begun: true}
}

// mistake returns the first failure, in the order of workers, that is a mistake for the user
// to correct, and the name of its process. A server that fails because a worker left may end
// before the worker that found the mistake.
func (l *launcher) mistake(exits []launch.Exit) (name string, f *event.Failed) {
	for _, exit := range exits {
		if f, ok := l.failures[exit.Name]; ok && f.Code == usageCode {
			return exit.Name, &f
		}
	}
	return "", nil
}

// afterSignal returns the error of a job that was asked to stop. Its Err is nil unless
// something went wrong on the way.
func (l *launcher) afterSignal(o launch.Outcome, sig os.Signal) error {
	// If the workers have reported that they stopped, everything is saved, and a second signal
	// only ended them while they left.
	end := &EndError{Signal: sig, Forced: errors.Is(o.Cause, ErrTwice) && !l.stopped, Begun: true}
	for _, exit := range o.Exits { // in the order of workers
		if failure, ok := l.failures[exit.Name]; ok && end.Err == nil && !failure.Early {
			end.Err = &WorkerError{exit.Name, failure}
		}
	}
	if end.Err == nil && (errors.Is(o.Cause, ErrTooSlow) || end.Forced && sig != os.Interrupt) { // who presses Ctrl-C twice knows why
		end.Err = o.Cause
	}
	return end
}

// countOf returns a number with its noun: "1 worker", "4 workers".
func countOf(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective/cluster"
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

// trainThreads are the threads of Go that a worker has at least: with one, the
// collector and the heartbeats would take turns with the step.
const trainThreads = 2

var (
	errTwice     = errors.New("interrupted twice")
	errElsewhere = errors.New("stopped because a worker, here or on another machine, was asked to")
)

// A crew is the workers that a launcher starts, all with the command line that
// it was given itself.
type crew struct {
	workers  int
	cores    int             // that they share
	threads  int             // of Go in each worker, at least
	place    cluster.Config  // of the first
	devices  placement       // the zero value is the CPU
	network  *launch.Network // that each has a node of; nil for this machine's own
	announce bool            // tell the user where the job is
	out      string          // directory of what the job saves, "" for none
	stopping string          // what the user is told at the first signal
}

// A display shows a job to the user. It is used from any goroutine.
type display interface {
	emitter
	log(name string, line []byte) // a line of a worker or, without a name, of the launcher
	notice(text string)           // log that waits for nothing
}

// launch starts the training of this machine's workers, shows what they say
// and waits for them.
func (a *app) launch(ctx context.Context, s *settings, show *screen, signals <-chan os.Signal) error {
	place, err := a.place(s.flags.placeFlags, s.workers)
	if err != nil {
		return usage(err)
	}
	return a.launchCrew(ctx, crew{
		workers: s.workers, cores: s.cores, threads: trainThreads, place: place, devices: s.placement, announce: true, out: absolute(s.flags.out),
		stopping: "stopping after this step; once more to stop at once",
	}, show, signals)
}

// launchCrew starts workers, shows what they say and waits for them.
func (a *app) launchCrew(ctx context.Context, c crew, show display, signals <-chan os.Signal) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	c.place.Cluster = cmp.Or(c.place.Cluster, defaultCluster)
	l := &launcher{
		app: a, crew: c, exe: exe, show: show, job: launch.Start(ctx, launch.Options{Grace: graceTime, Term: termTime}),
		ready: make(chan string, 1), forced: make(chan struct{}), running: map[string]*launch.Process{}, failures: map[string]failedEvent{},
	}
	defer l.end()
	kept := keepLosses(show)
	l.show = kept
	if a.follows() {
		l.show = follower{kept}
	}
	if c.network == nil { // whose addresses are reached from inside alone
		size := c.workers
		if a.launched != nil {
			size = 1
		}
		l.listing = newRegistered(c.place, size, a.command(), c.out, func(text string) { l.show.log("", []byte(text)) })
		defer l.listing.end()
	}
	watch := watchSignals(signals, l.interrupt, l.kill)
	if err = l.start(ctx); err != nil {
		l.job.Stop(err)
	}
	over := make(chan launch.Outcome, 1)
	go func() { over <- l.job.Wait() }()
	select {
	case outcome := <-over:
		err = l.verdict(outcome, err, watch.end())
		for _, line := range kept.lines(err) {
			show.log("", []byte(line))
		}
		return err
	case <-l.forced: // the workers are gone, and their last words cannot be written
		return &codedError{code: watch.end()}
	}
}

type launcher struct {
	crew
	app     *app
	exe     string
	job     *launch.Job
	show    display
	listing *registered   // nil if the job is in no registry
	ready   chan string   // where the first worker gossips
	forced  chan struct{} // closed forceTime after the second signal

	mu       sync.Mutex
	running  map[string]*launch.Process // by name, but for those that have ended
	vigil    vigil                      // nil until the first signal has come
	failures map[string]failedEvent     // by the launch's name of the worker
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

// start starts the first worker, and when it is known where it gossips, the
// others.
func (l *launcher) start(ctx context.Context) error {
	if l.app.launched != nil { // others start the others
		_, err := l.worker(l.place.Local)
		return err
	}
	first, err := l.worker(0)
	if err != nil || first == nil || l.workers == 1 {
		return err
	}
	select {
	case addr := <-l.ready:
		l.place.Join = append(l.place.Join, addr)
	case <-first.Done():
		return nil // it has said why
	case <-l.forced:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for local := 1; local < l.workers; local++ {
		if p, err := l.worker(local); err != nil || p == nil {
			if errors.Is(err, launch.ErrEnding) {
				return nil // another worker has failed, which Wait tells
			}
			return err
		}
	}
	return nil
}

// worker starts one worker: the same command line, with its place in the
// environment. It is nil when a signal came first.
func (l *launcher) worker(local int) (*launch.Process, error) {
	l.mu.Lock()
	defer l.mu.Unlock() // so that a signal reaches whoever was started
	if l.asked {
		return nil, nil
	}
	place := l.place
	place.Local = local
	switch {
	case l.network != nil:
		place.Bind = netip.AddrPortFrom(l.network.Addr(local), 0)
	case local > 0 && l.app.launched == nil:
		place.Bind = netip.AddrPortFrom(place.Bind.Addr(), 0)
	}
	env := slices.Concat(place.Environ(), l.devices.environ(place.Node, local, place.Nodes < 2), l.app.cacheEnviron())
	if os.Getenv("GOMAXPROCS") == "" {
		env = append(env, "GOMAXPROCS="+strconv.Itoa(max(1, l.threads, l.cores/l.workers)))
	}
	name := workerName(local)
	c := launch.Command{
		Name: name, Path: l.exe, Args: slices.Concat(l.app.args, l.app.shape), Env: env,
		Stdout: func(line []byte) { l.hear(local, line) },
		Stderr: func(line []byte) { l.show.log(name, line) },
	}
	if l.network != nil {
		c = l.network.Command(local, c)
	}
	p, err := l.job.Run(c)
	if err == nil {
		l.running[name] = p
	}
	if err == nil && l.listing != nil {
		l.listing.started(local, p.Pid())
	}
	return p, err
}

func workerName(local int) string { return fmt.Sprintf("worker %d", local) }

// hear takes a line of a worker's stdout.
func (l *launcher) hear(local int, line []byte) {
	name := workerName(local)
	event := decodeEvent(line)
	if event != nil {
		l.gotOn(name)
	}
	switch e := event.(type) {
	case nil:
		l.show.log(name, line)
	case *progressEvent: // no news for the user
	case *readyEvent:
		l.isReady(local, e.Addr)
	case *failedEvent:
		l.failed(name, *e)
	case *stoppedEvent:
		l.mu.Lock()
		l.stopped = true
		l.mu.Unlock()
		l.show.emit(e)
	default:
		l.mu.Lock()
		l.begun = true
		l.mu.Unlock()
		if view, ok := e.(*viewEvent); ok {
			l.locate(view)
		}
		l.show.emit(e)
	}
}

// isReady takes where a worker gossips.
func (l *launcher) isReady(local int, addr string) {
	if l.listing != nil {
		l.listing.ready(local, addr)
	}
	if local != l.place.Local {
		return // only the first is waited for
	}
	l.mu.Lock()
	l.gossip = addr
	l.mu.Unlock()
	if l.announce && !l.app.follows() {
		l.show.log("", []byte(l.announcement(addr)))
	}
	select {
	case l.ready <- addr:
	default: // it says so once
	}
}

// locate adds to a view where its job is found.
func (l *launcher) locate(e *viewEvent) {
	l.mu.Lock()
	e.Cluster, e.Gossip = l.place.Cluster, l.gossip
	l.mu.Unlock()
	if l.listing != nil {
		l.listing.agreed(e.Job)
	}
}

// announcement says where the job is, to join it and to look at it. It is called
// before the other workers of this machine are told where to join.
func (l *launcher) announcement(addr string) string {
	text := fmt.Sprintf("job %s on %s, %s", l.place.Cluster, addr, countOf(l.workers, "worker"))
	if l.place.Nodes > 1 {
		text += fmt.Sprintf(" here of %d machines", l.place.Nodes)
		if len(l.place.Join) == 0 && l.app.launched == nil {
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
func (l *launcher) failed(name string, e failedEvent) {
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
	l.show.notice(l.stopping)
}

// kill ends the workers at once.
func (l *launcher) kill() {
	l.job.Stop(errTwice)
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
// that knows it best, and what the signals that came ask for.
func (l *launcher) verdict(o launch.Outcome, startErr error, signalled int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if signalled != exitOK {
		return l.afterSignal(o, signalled)
	}
	err := o.Err()
	switch {
	case startErr != nil:
		return startErr
	case err == nil && l.stopped:
		return &codedError{exitFailed, errElsewhere}
	case err == nil:
		return nil
	case o.Root == nil:
		return &codedError{exitFailed, err}
	}
	if said, ok := l.failures[o.Root.Name]; ok {
		err = &workerError{o.Root.Name, said}
		if !l.begun {
			err = &unbegunError{err}
		}
		return &codedError{said.Code, err}
	}
	return &codedError{exitFailed, fmt.Errorf("%w; it was %s/%s", err, l.place.Node, strings.TrimPrefix(o.Root.Name, "worker "))}
}

// afterSignal is the error of a job that was asked to stop. It is no failure,
// unless something went wrong on the way: then SIGTERM must not look as if all
// were saved, and Ctrl-C still says that it was one.
func (l *launcher) afterSignal(o launch.Outcome, code int) error {
	var wrong error
	for _, exit := range o.Exits { // in the order of workers
		if said, ok := l.failures[exit.Name]; ok && wrong == nil && !said.Early {
			wrong = &workerError{exit.Name, said}
		}
	}
	if wrong == nil && errors.Is(o.Cause, errTooSlow) {
		wrong = o.Cause
	}
	if code == exitTerminated && (wrong != nil || errors.Is(o.Cause, errTwice)) {
		code = exitFailed
	}
	return &codedError{code, wrong}
}

// countOf is a number of things: "1 worker", "4 workers".
func countOf(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

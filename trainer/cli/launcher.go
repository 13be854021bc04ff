package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// Patience of the launcher: how long survivors may report after the first
// failure, and how long a worker may take to end when told to.
const (
	graceTime = 1500 * time.Millisecond
	termTime  = 500 * time.Millisecond
	// stopTime is how long the workers may take to finish their step after a
	// Ctrl-C.
	stopTime = 5 * time.Second
)

// launch starts the workers of this machine, shows what they say and waits for
// them.
func (a *app) launch(ctx context.Context, s *settings, show *screen, signals <-chan os.Signal) error {
	place, err := s.place()
	if err != nil {
		return usage(err)
	}
	if !place.Bind.Addr().IsLoopback() && !s.flags.insecure {
		fmt.Fprintf(a.stderr, "ringtrain: warning: traffic on %v is neither encrypted nor authenticated; use a network that you trust (--insecure to say that you know)\n", place.Bind.Addr())
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	job := launch.Start(ctx, launch.Options{Grace: graceTime, Term: termTime})
	l := &launcher{app: a, settings: s, place: place, exe: exe, job: job, show: show, ready: make(chan string, 1), failures: map[string]failedEvent{}}
	watch := watchSignals(signals, l.interrupt, func() { job.Stop(errors.New("interrupted twice")) })
	err = l.start(ctx)
	if err != nil {
		job.Stop(err)
	}
	outcome := job.Wait()
	code := watch.end()
	l.end()
	if code != exitOK {
		return &codedError{code: code}
	}
	return l.verdict(outcome, err)
}

type launcher struct {
	app      *app
	settings *settings
	place    cluster.Config
	exe      string
	job      *launch.Job
	show     *screen
	ready    chan string // where the first worker gossips

	mu       sync.Mutex
	failures map[string]failedEvent // by the launch's name of the worker
	stopping *time.Timer
	ended    bool
}

// start starts the first worker, and when it is known where it gossips, the
// others.
func (l *launcher) start(ctx context.Context) error {
	first, err := l.worker(0)
	if err != nil || l.settings.workers == 1 {
		return err
	}
	select {
	case addr := <-l.ready:
		l.place.Join = append(l.place.Join, addr)
	case <-first.Done():
		return nil // it has said why
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for local := 1; local < l.settings.workers; local++ {
		if _, err := l.worker(local); err != nil {
			if errors.Is(err, launch.ErrEnding) {
				return nil // another worker has failed, which Wait tells
			}
			return err
		}
	}
	return nil
}

// worker starts one worker: the same command line, with its place in the
// environment.
func (l *launcher) worker(local int) (*launch.Process, error) {
	place := l.place
	place.Local = local
	if local > 0 {
		place.Bind = netip.AddrPortFrom(place.Bind.Addr(), 0)
	}
	env := place.Environ()
	if os.Getenv("GOMAXPROCS") == "" {
		env = append(env, "GOMAXPROCS="+strconv.Itoa(max(1, l.settings.cores/l.settings.workers)))
	}
	name := fmt.Sprintf("worker %d", local)
	return l.job.Run(launch.Command{
		Name: name, Path: l.exe, Args: l.app.args, Env: env,
		Stdout: func(line []byte) { l.hear(name, line) },
		Stderr: func(line []byte) { l.show.log(name, line) },
	})
}

// hear takes a line of a worker's stdout.
func (l *launcher) hear(name string, line []byte) {
	switch e := decodeEvent(line).(type) {
	case nil:
		l.show.log(name, line)
	case *readyEvent:
		select {
		case l.ready <- e.Addr:
		default: // only the first is waited for
		}
	case *failedEvent:
		l.mu.Lock()
		l.failures[name] = *e
		l.mu.Unlock()
	default:
		l.show.emit(e)
	}
}

// interrupt asks the workers to stop after their step, and sees to it that
// they do.
func (l *launcher) interrupt() {
	l.show.log("", []byte("stopping after this step; once more to stop at once"))
	_ = l.job.Signal(os.Interrupt)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.stopping = time.AfterFunc(stopTime, func() { l.job.Stop(errors.New("the workers did not stop in time")) })
	}
}

func (l *launcher) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.stopping != nil {
		l.stopping.Stop()
	}
}

// verdict is the error of the job: its root cause, in the words of the worker
// that knows it best.
func (l *launcher) verdict(o launch.Outcome, startErr error) error {
	if startErr != nil {
		return startErr
	}
	err := o.Err()
	if err == nil {
		return nil
	}
	if o.Root == nil {
		return &codedError{exitFailed, err}
	}
	if said, ok := l.failures[o.Root.Name]; ok {
		return &codedError{said.Code, fmt.Errorf("%s (%s): %s", o.Root.Name, said.Name, said.Error)}
	}
	return &codedError{exitFailed, fmt.Errorf("%w; it was %s/%s", err, l.place.Node, o.Root.Name[len("worker "):])}
}

// place is where this machine's workers find each other and other machines.
func (s *settings) place() (cluster.Config, error) {
	f := s.flags
	c := cluster.Config{Cluster: f.cluster, Nodes: f.nodes, Node: cluster.NodeName(), LocalSize: s.workers, Join: f.join}
	if c.Cluster == "" && f.nodes == 1 {
		var b [4]byte
		_, _ = rand.Read(b[:]) // never fails, see crypto/rand
		c.Cluster = "ringtrain-" + hex.EncodeToString(b[:])
	}
	for _, seed := range f.join {
		if _, _, err := net.SplitHostPort(seed); err != nil {
			return c, fmt.Errorf("--join %s: it must be HOST:PORT, the address that the first machine prints", seed)
		}
	}
	addr, err := bindAddress(f)
	if err != nil {
		return c, err
	}
	c.Bind = addr
	return c, portIsFree(addr)
}

// bindAddress is the address of --bind, or one that other machines reach.
func bindAddress(f trainFlags) (netip.AddrPort, error) {
	port := uint16(0)
	if f.nodes > 1 && len(f.join) == 0 {
		port = cluster.DefaultPort
	}
	if f.bind != "" {
		if ap, err := netip.ParseAddrPort(f.bind); err == nil {
			return ap, nil
		}
		ip, err := netip.ParseAddr(f.bind)
		if err != nil {
			return netip.AddrPort{}, fmt.Errorf("--bind %s: it must be an IP address of this machine, or ADDRESS:PORT", f.bind)
		}
		return netip.AddrPortFrom(ip, port), nil
	}
	ip := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	var err error
	switch {
	case len(f.join) > 0:
		ip, err = cluster.AddrTowards(f.join[0])
	case f.nodes > 1:
		ip, err = cluster.OwnAddr()
	}
	return netip.AddrPortFrom(ip, port), err
}

// portIsFree says who can't have a port before any worker is started.
func portIsFree(at netip.AddrPort) error {
	tcp, err := net.Listen("tcp", at.String())
	if err != nil {
		return portError(at, err)
	}
	_ = tcp.Close()
	udp, err := net.ListenPacket("udp", at.String())
	if err != nil {
		return portError(at, err)
	}
	return udp.Close()
}

func portError(at netip.AddrPort, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("--bind %v: the port is in use by another process; name another, or only the address for any free port", at)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("--bind %v: this machine has no such address", at)
	}
	return fmt.Errorf("--bind %v: %w", at, err)
}

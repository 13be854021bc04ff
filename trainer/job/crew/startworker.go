package crew

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/ringtrain/ringtrain/trainer/launch"
)

// startWorkers starts the first worker, waits until it reports its gossip address, and
// starts the others, which join it there.
func (l *launcher) startWorkers(ctx context.Context) error {
	if l.Process.Launched != nil { // mpirun or the like starts the others
		_, err := l.startWorker(l.Place.Local)
		return err
	}
	first, err := l.startWorker(0)
	if err != nil || first == nil || l.Workers+l.Servers == 1 {
		return err
	}
	select {
	case addr := <-l.ready:
		l.Place.Join = append(l.Place.Join, addr)
	case <-first.Done():
		return nil // Wait reports why
	case <-l.forced:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for local := 1; local < l.Workers+l.Servers; local++ {
		if p, err := l.startWorker(local); err != nil || p == nil {
			if errors.Is(err, launch.ErrEnding) {
				return nil // another worker has failed; Wait reports it
			}
			return err
		}
	}
	return nil
}

// startWorker starts one worker process: this program with the same arguments, and with
// the worker's place in the environment. It returns nil if a signal came first.
func (l *launcher) startWorker(local int) (*launch.Process, error) {
	l.mu.Lock()
	defer l.mu.Unlock()                             // so that a signal reaches every worker that was started
	if l.asked && !(l.begun && l.isServer(local)) { // workers that stop still need their servers
		return nil, nil
	}
	place := l.Place
	place.Local = local
	if l.isServer(local) {
		l.servers.place(&place)
	}
	switch {
	case l.Network != nil:
		place.Bind = netip.AddrPortFrom(l.Network.Addr(local), 0)
	case local > 0 && l.Process.Launched == nil:
		place.Bind = netip.AddrPortFrom(place.Bind.Addr(), 0)
	}
	env := place.Environ()
	if l.Environ != nil {
		env = append(env, l.Environ(local)...)
	}
	env = append(env, runtimeEnviron(l.Cores/(l.Workers+l.Servers))...)
	name := l.name(local)
	c := launch.Command{
		Name: name, Path: l.exe, Args: l.Args, Env: env,
		Stdout: func(line []byte) { l.onLine(local, line) },
		Stderr: func(line []byte) { l.show.Log(name, line) },
	}
	switch {
	case l.isServer(local) && l.Restarts > 0:
		c.Spare = l.servers.spare
	case l.Survive && !l.isServer(local) && local > 0:
		c.Spare = l.survivors.spare
	}
	if l.Network != nil {
		c = l.Network.Command(local, c)
	}
	p, err := l.job.Run(c)
	if err == nil {
		l.running[name] = p
		delete(l.watchdog, name) // a server that is started after the first signal was not asked to stop
		if l.isServer(local) {
			l.endServers(l.servers.started(local, p))
		}
		l.exits.Go(func() { l.onExit(local, p) })
	}
	if err == nil && l.listing != nil {
		l.listing.started(local, p.Pid())
	}
	return p, err
}

// name returns how events and errors call a process of this machine.
func (l *launcher) name(local int) string {
	if l.isServer(local) {
		return fmt.Sprintf("server %d", local)
	}
	return fmt.Sprintf("worker %d", local)
}

// isServer reports whether a process of this machine is a server.
func (l *launcher) isServer(local int) bool { return l.Servers > 0 && local >= l.Workers }

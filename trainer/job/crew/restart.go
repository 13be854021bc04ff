package crew

import (
	"errors"
	"fmt"
	"sync"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// servers decides when a launcher starts the servers of its machine again. A server process
// serves in one group of the job. After the loss of any server, the workers form the next
// group, and each launcher starts all of its servers again, to join that.
//
// A server that is lost before its group is formed joins the same group. If the launcher
// guesses wrong, because it hears of a group late, the workers go on to the next group, and
// the server is started once more.
type servers struct {
	mu    sync.Mutex
	most  int // restarts after a failure
	used  int
	done  int             // workers that have ended without a failure
	over  bool            // all workers of this machine have: start none, and end those that wait
	group int             // number of the newest group
	addr  string          // of a member of it; "" for group 0
	ready bool            // it is formed
	each  map[int]*server // by number on this machine
}

// A server is one server process, or none if it has ended.
type server struct {
	process *launch.Process // nil before it is known
	running bool
	group   int // that it joins
}

// place sets where a server joins, and records that it is started.
func (s *servers) place(c *cluster.Config) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Role = collective.Server
	if s.each == nil {
		s.each = map[int]*server{}
	}
	s.each[c.Local] = &server{running: true, group: s.group}
	if s.group > 0 {
		c.Cluster, c.Join = clusterOf(c.Cluster, s.group), []string{s.addr}
	}
}

// started records the process of a server, and returns it if no worker will join it.
func (s *servers) started(local int, p *launch.Process) (stale []*launch.Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.each[local].process = p
	if s.each[local].group < s.group || s.over {
		stale = append(stale, p)
	}
	return stale
}

// spare reports whether the job survives the failure of a server: a signal killed it, the
// job's first group is formed, and restarts are left.
func (s *servers) spare(exit launch.Exit) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if exit.Signal == 0 || s.group == 0 && !s.ready || s.used >= s.most {
		return false
	}
	s.used++
	return true
}

// exhausted reports whether servers of this machine have been started again as often as they
// may.
func (s *servers) exhausted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most > 0 && s.used >= s.most
}

// ended records that a server has ended.
func (s *servers) ended(local int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.each[local].running, s.each[local].process = false, nil
}

// finished records that a worker has ended without a failure. If all workers of this
// machine have, it returns the servers that still run, because no worker will join them.
func (s *servers) finished(workers int) []*launch.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done++; s.done < workers {
		return nil
	}
	s.over = true
	return s.before(s.group + 1)
}

// regrouped records what a worker says about groups, and returns the processes of servers
// that do not join the newest.
func (s *servers) regrouped(e *event.Regrouped) (stale []*launch.Process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.Number < s.group:
	case e.Addr == "":
		s.ready = true
	default:
		s.group, s.addr, s.ready = e.Number, e.Addr, false
	}
	return s.before(s.group)
}

// before returns the processes of servers that join groups before a number.
func (s *servers) before(group int) (all []*launch.Process) {
	for _, one := range s.each {
		if one.process != nil && one.group < group {
			all = append(all, one.process)
		}
	}
	return all
}

// due returns the servers to start now. The caller starts them.
func (s *servers) due() (locals []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for local, one := range s.each {
		if !one.running && !s.over && (one.group < s.group || !s.ready) {
			one.running = true
			locals = append(locals, local)
		}
	}
	return locals
}

// onRegrouped handles a worker's report about the groups of the job.
func (l *launcher) onRegrouped(e *event.Regrouped) {
	if l.listing != nil && e.Addr != "" {
		l.listing.regrouped(clusterOf(l.Place.Cluster, e.Number))
	}
	l.endServers(l.servers.regrouped(e))
	l.startServers()
}

// afterExit starts servers again after the end of a process of this machine.
func (l *launcher) afterExit(local int, exit launch.Exit) {
	switch {
	case l.Survive && local == 0 && !exit.Failed():
		l.endRest()
		return
	case l.Restarts == 0:
		return
	case !l.isServer(local):
		if !exit.Failed() {
			l.endServers(l.servers.finished(l.Workers))
		}
		return
	case exit.Failed() && !exit.Spared && !exit.ByUs:
		return
	case exit.Spared && !exit.ByUs:
		l.show.Log("", fmt.Appendf(nil, "%v: starting it again", exit))
	}
	l.servers.ended(local)
	l.startServers()
}

// startServers starts the servers that are due.
func (l *launcher) startServers() {
	for _, local := range l.servers.due() {
		if _, err := l.startWorker(local); err != nil && !errors.Is(err, launch.ErrEnding) && !errors.Is(err, launch.ErrOver) {
			l.job.Stop(err)
		}
	}
}

// endServers ends processes at once. What they have kept does not depend on how they end.
func (l *launcher) endServers(all []*launch.Process) {
	for _, p := range all {
		_ = l.job.Kill(p) // if the job is over, it has ended
	}
}

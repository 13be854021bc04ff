package crew

import (
	"fmt"
	"sync"

	"github.com/ringtrain/ringtrain/trainer/launch"
)

// joining is the part of a launcher's state that says which workers have joined the job.
type joining struct {
	ready    chan string     // receives the first worker's gossip address
	gossip   string          // that address; "" until it is known
	joined   map[string]bool // workers that have reported their gossip address
	unjoined error           // a worker has ended without joining, and without a failure
	exits    sync.WaitGroup  // of onExit
}

func newJoining() joining { return joining{ready: make(chan string, 1), joined: map[string]bool{}} }

// onReady handles a worker's report that it gossips at addr.
func (l *launcher) onReady(local int, addr string) {
	if l.listing != nil {
		l.listing.ready(local, addr)
	}
	first := local == l.Place.Local
	l.mu.Lock()
	l.joined[l.name(local)] = true
	again := first && l.gossip != ""
	if first {
		l.gossip = addr
	}
	l.mu.Unlock()
	if !first || again {
		return // startWorkers waits only for the first
	}
	if l.Announce && !l.Process.Follows() {
		l.show.Log("", []byte(l.announcement(addr)))
	}
	select {
	case l.ready <- addr:
	default: // already reported
	}
}

// onExit waits until p has ended, and stops the job if p neither joined nor failed. Such
// a process has not reached Process.Run: without it the others would wait in vain, or
// the job would seem to succeed.
func (l *launcher) onExit(local int, p *launch.Process) {
	<-p.Done()
	exit, _ := p.Exit()
	l.afterExit(local, exit)
	l.mu.Lock()
	defer l.mu.Unlock()
	if exit.Failed() || exit.ByUs || l.joined[l.name(local)] || l.asked {
		return
	}
	l.unjoined = fmt.Errorf("%v before it joined the job: a worker runs the same program with the same arguments, and must reach the same call", exit)
	l.job.Stop(l.unjoined)
}

// announcement tells the user where other machines join the job. It runs before
// startWorkers sets Place.Join for the other workers of this machine.
func (l *launcher) announcement(addr string) string {
	text := fmt.Sprintf("cluster %s on %s, %s", l.Place.Cluster, addr, countOf(l.Workers, "worker"))
	if l.Place.Nodes > 1 {
		text += fmt.Sprintf(" here of %d machines", l.Place.Nodes)
		if len(l.Place.Join) == 0 && l.Process.Launched == nil {
			text += "; on the other machines: --join " + addr
		}
	}
	return text
}

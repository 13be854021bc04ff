package crew

import (
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// A registered keeps the entry of a running job in the user's registry, where
// members and status look. A job that cannot be listed runs all the same.
type registered struct {
	complain func(text string) // once, if the job is not listed

	mu     sync.Mutex
	entry  launch.Listing
	size   int                  // workers that the launcher starts
	listed *launch.Registration // nil until a worker gossips
	over   bool                 // removed, or given up
}

// newRegistered prepares the entry of a job at this place, of which size workers
// are to be started.
func newRegistered(place cluster.Config, size int, command, out string, complain func(string)) *registered {
	dir, _ := os.Getwd() // "" where it was removed
	return &registered{complain: complain, size: size, entry: launch.Listing{
		Launcher: launch.Self(), Started: time.Now(), Command: command, Directory: dir, Cluster: place.Cluster, KeyFile: place.KeyFile, Out: out,
		Nodes: place.Nodes, Node: place.Node,
	}}
}

// started takes note of a worker's process.
func (l *registered) started(local, pid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.worker(local).Process = launch.Identify(pid)
}

// ready takes note of where a worker gossips. The first lists the job, and the
// last makes the entry complete.
func (l *registered) ready(local int, addr string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.worker(local).Gossip = addr
	complete := len(l.entry.Workers) == l.size
	for _, w := range l.entry.Workers {
		complete = complete && w.Gossip != ""
	}
	if l.listed == nil || complete {
		l.write()
	}
}

// worker is the entry of one worker. It is called with mu held.
func (l *registered) worker(local int) *launch.Listed {
	i := slices.IndexFunc(l.entry.Workers, func(w launch.Listed) bool { return w.Local == local })
	if i < 0 {
		i = len(l.entry.Workers)
		l.entry.Workers = append(l.entry.Workers, launch.Listed{Local: local})
	}
	return &l.entry.Workers[i]
}

// agreed takes note of the number of the job's first view.
func (l *registered) agreed(job string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entry.Job != job {
		l.entry.Job = job
		l.write()
	}
}

// write is called with mu held.
func (l *registered) write() {
	if l.over {
		return
	}
	var err error
	if l.listed == nil {
		l.listed, err = launch.Register(l.entry)
	} else {
		err = l.listed.Update(l.entry)
	}
	if err != nil {
		l.over = true
		l.complain("members and status will not find this job by themselves: " + oneLine(err))
	}
}

// end takes the entry away.
func (l *registered) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.listed != nil {
		_ = l.listed.Remove() // the next reader sees that its launcher is dead
	}
}

// oneLine is an error that may be several, in one line.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

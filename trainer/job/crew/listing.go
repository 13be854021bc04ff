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

// A jobListing maintains the entry of a running job in the user's registry, which
// "ringtrain members" and "ringtrain status" read. A job that cannot be listed still runs.
type jobListing struct {
	warn func(text string) // called once if the job cannot be listed

	mu     sync.Mutex
	entry  launch.Listing
	size   int                  // workers that the launcher starts
	listed *launch.Registration // nil until a worker gossips
	over   bool                 // the entry was removed, or could not be written
}

// newJobListing prepares the entry of a job with size workers on this machine.
func newJobListing(place cluster.Config, size int, command, out string, warn func(string)) *jobListing {
	dir, _ := os.Getwd() // "" if it was removed
	return &jobListing{warn: warn, size: size, entry: launch.Listing{
		Launcher: launch.Self(), Started: time.Now(), Command: command, Directory: dir, Cluster: place.Cluster, KeyFile: place.KeyFile, Out: out,
		Nodes: place.Nodes, Node: place.Node,
	}}
}

// started records a worker's process.
func (l *jobListing) started(local, pid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.worker(local).Process = launch.Identify(pid)
}

// ready records a worker's gossip address. The entry is written for the first worker,
// so that the job is found early, and for the last.
func (l *jobListing) ready(local int, addr string) {
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

// regrouped records the name under which the processes form their newest group. Each of
// them is ready again at another address.
func (l *jobListing) regrouped(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entry.Gossip = name
	l.write()
}

// worker returns the entry of one worker, and adds it if necessary. The caller holds mu.
func (l *jobListing) worker(local int) *launch.Listed {
	i := slices.IndexFunc(l.entry.Workers, func(w launch.Listed) bool { return w.Local == local })
	if i < 0 {
		i = len(l.entry.Workers)
		l.entry.Workers = append(l.entry.Workers, launch.Listed{Local: local})
	}
	return &l.entry.Workers[i]
}

// agreed records the job's id, which its first view determines.
func (l *jobListing) agreed(job string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entry.Job != job {
		l.entry.Job = job
		l.write()
	}
}

// write writes the entry. The caller holds mu.
func (l *jobListing) write() {
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
		l.warn("this job is not listed, so ringtrain members and status need its address: " + oneLine(err))
	}
}

// end removes the entry.
func (l *jobListing) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	if l.listed != nil {
		_ = l.listed.Remove() // if it stays, readers see that its launcher is dead
	}
}

// oneLine returns the text of an error, which may be several joined, on one line.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

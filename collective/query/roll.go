package query

import (
	"context"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// A Watcher observes a job from outside, as *cluster.Watcher does.
type Watcher interface {
	// View waits until there is a View and returns the newest one.
	View(ctx context.Context) (collective.View, error)
	// Members returns the processes that gossip believes alive.
	Members() []collective.Member
	// Ask sends a question to a member and waits for the answer.
	Ask(ctx context.Context, m collective.Member, question []byte) ([]byte, error)
}

// A Roll lists the processes of a job.
type Roll struct {
	Job     string   `json:"job,omitempty"` // "" before the first View
	Epoch   uint64   `json:"epoch"`
	Size    int      `json:"size"`    // of the View
	Members []Member `json:"members"` // in rank order, then those without a rank
}

// A Member is one process of a Roll.
type Member struct {
	Rank  *int     `json:"rank"` // null for a process in no View
	Name  string   `json:"name"`
	Node  string   `json:"node"`
	Local int      `json:"local"`
	Role  string   `json:"role"`
	Addrs []string `json:"addrs"`
	Alive bool     `json:"alive"` // gossip believes so
	// Stopped says whether the process is suspended. Only its own machine can tell,
	// so Read leaves it false.
	Stopped bool `json:"stopped,omitempty"`
}

// Read returns what w knows of the job. It waits at most patience for a View. If
// there is none, the Roll has only the processes that gossip sees.
func Read(ctx context.Context, w Watcher, patience time.Duration) Roll {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v, err := w.View(ctx)
	if err != nil {
		v = collective.View{}
	}
	return NewRoll(v, w.Members())
}

// JobName returns the number of a job as users see it.
func JobName(job uint64) string { return fmt.Sprintf("%016x", job) }

// NewRoll combines a View, which may be empty, with the processes that gossip
// sees.
func NewRoll(v collective.View, seen []collective.Member) Roll {
	r := Roll{Epoch: v.Epoch, Size: v.Size()}
	if v.Size() > 0 {
		r.Job = JobName(v.Job)
	}
	type life struct {
		name  string
		nonce uint64
	}
	alive := map[life]bool{}
	for _, m := range seen {
		alive[life{m.Name, m.Nonce}] = true
	}
	add := func(rank *int, m collective.Member) {
		l := life{m.Name, m.Nonce}
		entry := Member{Rank: rank, Name: m.Name, Node: m.Node, Local: m.Local, Role: m.Role.String(), Alive: alive[l], Addrs: []string{}}
		for _, addr := range m.Addrs {
			entry.Addrs = append(entry.Addrs, addr.String())
		}
		r.Members = append(r.Members, entry)
	}
	ranked := map[life]bool{}
	for rank, m := range v.Members {
		ranked[life{m.Name, m.Nonce}] = true
		add(&rank, m)
	}
	for _, m := range seen {
		if !ranked[life{m.Name, m.Nonce}] {
			add(nil, m)
		}
	}
	return r
}

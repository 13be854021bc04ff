package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/membership"
)

// A Watcher looks on at a job: it sees who is there, and is in no View. Its
// methods are safe for concurrent use.
type Watcher struct {
	agent *membership.Agent
	seeds []string
}

// A NobodyError says why it is of no use to wait for a job: each seed has refused
// the connection, or has turned this process away.
type NobodyError struct {
	Seeds []membership.Seed
}

// Error is one line.
func (e *NobodyError) Error() string {
	var addrs, why []string
	refused := true
	for _, s := range e.Seeds {
		addrs, why, refused = append(addrs, s.Addr), append(why, s.String()), refused && s.Refused
	}
	if refused {
		return fmt.Sprintf("nobody listens at %s: the job is over, or the address is wrong", strings.Join(addrs, ", "))
	}
	return "nobody answered: " + strings.Join(why, "; ")
}

// Watch begins to look on at the job of c.Cluster. Of c it uses where to gossip
// (Bind, Join), the key, Cluster, Node, Log and Progress. It waits for nobody: a
// moment passes until Members has heard of the others.
func Watch(ctx context.Context, c Config) (*Watcher, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	n := &Node{config: c, member: collective.Member{
		Name: fmt.Sprintf("%s/watcher", c.Node), Nonce: nonce(), Node: c.Node, LocalSize: 1, Host: host(), Role: collective.Watcher,
	}}
	_, gossipKey, err := n.secure()
	if err != nil {
		return nil, err
	}
	agent, err := membership.Start(ctx, membership.Config{
		Member: n.member, Bind: c.Bind, Join: c.Join, Cluster: c.Cluster, Key: gossipKey, Log: c.Log, Progress: c.Progress,
	})
	if err != nil {
		return nil, err
	}
	return &Watcher{agent: agent, seeds: c.Join}, nil
}

// meetTime is between two looks at whether somebody was seen.
const meetTime = 20 * time.Millisecond

// Meet waits until gossip sees a process of the job. It fails with a
// *NobodyError at once where no seed can be joined, now or later, and with a
// *membership.WaitError when ctx ends.
func (w *Watcher) Meet(ctx context.Context) error {
	ticker := time.NewTicker(meetTime)
	defer ticker.Stop()
	for len(w.Members()) == 0 {
		if failures := w.failures(); hopeless(w.seeds, failures) {
			return &NobodyError{Seeds: failures}
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			_, err := w.View(ctx)
			return err
		}
	}
	return nil
}

// failures are the seeds that could not be joined when they were last tried.
func (w *Watcher) failures() []membership.Seed {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := w.agent.View(now)
	var waited *membership.WaitError
	if !errors.As(err, &waited) {
		return nil
	}
	return waited.Waiting.Seeds
}

// hopeless reports whether every seed has refused or rejected this process.
func hopeless(seeds []string, failures []membership.Seed) bool {
	final := map[string]bool{}
	for _, s := range failures {
		final[s.Addr] = s.Refused || s.Rejected
	}
	return len(seeds) > 0 && !slices.ContainsFunc(seeds, func(addr string) bool { return !final[addr] })
}

// Members are the processes that gossip believes alive, in the order of ranks,
// in a View or not. This one is not among them; other watchers are.
func (w *Watcher) Members() []collective.Member {
	self := w.agent.Member()
	return slices.DeleteFunc(w.agent.Seen(), func(m collective.Member) bool {
		return m.Name == self.Name && m.Nonce == self.Nonce
	})
}

// View is the newest View that the members hold, with Self -1; it may be a
// second behind. It waits until there is one; when ctx ends first, the error is
// a *membership.WaitError.
func (w *Watcher) View(ctx context.Context) (collective.View, error) { return w.agent.View(ctx) }

// Ask asks a process of the job, which answers by its Config.Answer, and waits
// until ctx ends: one that is stopped, gone, or has no Answer says nothing. See
// [membership.Agent.Ask].
func (w *Watcher) Ask(ctx context.Context, whom collective.Member, question []byte) ([]byte, error) {
	return w.agent.Ask(ctx, whom, question)
}

// farewell bounds how long a Watcher takes to say goodbye.
const farewell = 500 * time.Millisecond

// Close ends the looking on, within half a second. Closing twice is fine.
func (w *Watcher) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	_ = w.agent.Leave(ctx) // who does not hear of it finds out
	return w.agent.Close()
}

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

// A Watcher observes a job: it sees the members and is in no View. Its methods are
// safe for concurrent use.
type Watcher struct {
	agent *membership.Agent
	seeds []string
}

// A NoAnswerError reports that waiting for a job is useless: each seed refused the
// connection or rejected this process.
type NoAnswerError struct {
	Seeds []membership.Seed
}

// Error returns one line.
func (e *NoAnswerError) Error() string {
	var addrs, why []string
	refused := true
	for _, s := range e.Seeds {
		addrs, why, refused = append(addrs, s.Addr), append(why, s.String()), refused && s.Refused
	}
	if refused {
		return fmt.Sprintf("nothing is listening at %s: the job is over, or the address is wrong", strings.Join(addrs, ", "))
	}
	return "the job rejects this process: " + strings.Join(why, "; ")
}

// Watch begins to observe the job of c.Cluster. It uses only Bind, Join, the key,
// Cluster, Node, Log and Progress of c. It does not wait: Members hears of the others
// a moment later.
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

// meetTime is the interval between two checks of Meet.
const meetTime = 20 * time.Millisecond

// Meet waits until gossip sees a process of the job. It returns a *NoAnswerError at
// once if no seed can ever be joined, a *membership.WaitError when ctx ends, and
// membership.ErrClosed after Close.
func (w *Watcher) Meet(ctx context.Context) error {
	ticker := time.NewTicker(meetTime)
	defer ticker.Stop()
	for len(w.Members()) == 0 {
		failures, err := w.failures()
		if errors.Is(err, membership.ErrClosed) {
			return err
		}
		if hopeless(w.seeds, failures) {
			return &NoAnswerError{Seeds: failures}
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

// failures returns the seeds that could not be joined at the last attempt, or why there is
// no View.
func (w *Watcher) failures() ([]membership.Seed, error) {
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := w.agent.View(now)
	var waited *membership.WaitError
	if !errors.As(err, &waited) {
		return nil, err
	}
	return waited.Waiting.Seeds, nil
}

// hopeless reports whether every seed refused or rejected this process.
func hopeless(seeds []string, failures []membership.Seed) bool {
	final := map[string]bool{}
	for _, s := range failures {
		final[s.Addr] = s.Refused || s.Rejected
	}
	return len(seeds) > 0 && !slices.ContainsFunc(seeds, func(addr string) bool { return !final[addr] })
}

// Members returns the processes that gossip believes alive, in or out of a View, in
// rank order. They include other Watchers, but not this one.
func (w *Watcher) Members() []collective.Member {
	self := w.agent.Member()
	return slices.DeleteFunc(w.agent.Seen(), func(m collective.Member) bool {
		return m.Name == self.Name && m.Nonce == self.Nonce
	})
}

// View returns the newest View that the members hold, with Self -1. It may be a
// second behind. View waits until there is one; if ctx ends first, the error is a
// *membership.WaitError.
func (w *Watcher) View(ctx context.Context) (collective.View, error) { return w.agent.View(ctx) }

// Ask sends a question to a process of the job, whose Config.Answer answers, and
// waits. A process that is stopped, gone, or has no Answer does not reply; then Ask
// waits until ctx ends. See [membership.Agent.Ask].
func (w *Watcher) Ask(ctx context.Context, member collective.Member, question []byte) ([]byte, error) {
	return w.agent.Ask(ctx, member, question)
}

// farewell bounds how long Close takes to notify the others.
const farewell = 500 * time.Millisecond

// Close ends the observation, within half a second. A second Close does nothing.
func (w *Watcher) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	_ = w.agent.Leave(ctx) // processes that miss it detect it
	return w.agent.Close()
}

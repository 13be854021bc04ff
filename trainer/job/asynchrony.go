package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/job/event"
	"github.com/ringtrain/ringtrain/trainer/paramserver"
)

// psAsync is the strategy with parameter servers in which workers do not wait for each other.
const psAsync = "ps-async"

// psPeers is the strategy in which workers own parameters and do not wait for each other.
const psPeers = "ps-peers"

// Asynchrony says which gradients parameter servers wait for, and which they apply.
type Asynchrony struct {
	Quorum       int           // gradients in an update; 0: of all workers with ps-sync, as many as workers with ps-peers, 1 with ps-async
	Timeout      time.Duration // for the rest of a quorum, after its first gradient; 0: none
	MaxStaleness string        // with ps-async, gradients that are older by more updates are late; "": none is
	Stale        string        // what becomes of late gradients: "drop", "damp", or "" for "drop"
}

// servedStrategy returns the strategy for which parameters have owners.
func (f *Spec) servedStrategy() string {
	if f.Strategy == psAsync || f.Strategy == psPeers {
		return f.Strategy
	}
	return psSync
}

// asynchronous reports whether updates are made without waiting for all workers.
func (f *Spec) asynchronous() bool {
	a := f.Gradients.Asynchrony
	return f.Strategy == psAsync || f.Strategy == psPeers || f.Strategy == psSync && (a.Quorum > 0 || a.Timeout > 0)
}

// policy returns the policy of the servers, if asynchronous.
func (f *Spec) policy() paramserver.Policy {
	a := f.Gradients.Asynchrony
	if f.Strategy == psPeers {
		return paramserver.PeersPolicy(a.Quorum)
	}
	p := paramserver.Policy{Quorum: a.Quorum, Timeout: a.Timeout}
	if f.Strategy == psSync {
		p.Name, p.Bounded = psSync, true
		if p.Quorum == 0 {
			p.Quorum = paramserver.Everyone
		}
		return p
	}
	p.Damp = a.Stale == "damp"
	p.Bounded = a.MaxStaleness != "" || p.Damp
	p.MaxStaleness, _ = strconv.Atoi(cmp.Or(a.MaxStaleness, "0")) // checkAsynchrony has accepted it
	return p
}

// checkAsynchrony finds what is wrong with Gradients.Asynchrony.
func (f *Spec) checkAsynchrony() error {
	a := f.Gradients.Asynchrony
	served := f.Strategy == psSync || f.Strategy == psAsync
	bound, err := strconv.Atoi(cmp.Or(a.MaxStaleness, "0"))
	switch {
	case a.Quorum < 0:
		return fmt.Errorf("--quorum must be at least 1, not %d", a.Quorum)
	case a.Timeout < 0:
		return fmt.Errorf("--straggler-timeout must be longer than 0, not %v", a.Timeout)
	case err != nil || bound < 0:
		return fmt.Errorf("--max-staleness must be a number of updates, 0 or more, not %q", a.MaxStaleness)
	case a.Stale != "" && a.Stale != "drop" && a.Stale != "damp":
		return fmt.Errorf("--stale must be drop or damp, not %q", a.Stale)
	case !served && f.Strategy != psPeers && a.Quorum > 0:
		return fmt.Errorf("--quorum needs --strategy %s, %s or %s", psSync, psAsync, psPeers)
	case !served && a.Timeout > 0:
		return fmt.Errorf("--straggler-timeout needs --strategy %s or %s", psSync, psAsync)
	case f.Strategy == psAsync && a.Timeout > 0 && a.Quorum < 2:
		return fmt.Errorf("--straggler-timeout needs --quorum of at least 2 with --strategy %s, whose updates otherwise do not wait", psAsync)
	case f.Strategy != psAsync && a.MaxStaleness != "":
		return fmt.Errorf("--max-staleness needs --strategy %s", psAsync)
	case f.Strategy != psAsync && a.Stale != "":
		return fmt.Errorf("--stale needs --strategy %s", psAsync)
	case a.Stale == "drop" && a.MaxStaleness == "":
		return errors.New("--stale drop needs --max-staleness")
	}
	return nil
}

// checkQuorum reports a quorum that the workers may not reach. With ps-peers, several gradients
// of it may be from one worker.
func (f *Spec) checkQuorum(workers int) error {
	q, servers := f.Gradients.Asynchrony.Quorum, f.ServerProcesses()
	if f.Gradients.Servers == Colocated {
		servers = workers
	}
	switch {
	case f.Strategy == psPeers:
	case q > workers:
		return fmt.Errorf("--quorum must be at most the number of workers, %d, not %d", workers, q)
	case f.policy().CheckServers(workers, servers) != nil:
		return fmt.Errorf("--quorum %d of %d workers needs at most 2 servers, not %d, because each server may wait for a worker that waits for another: lower --servers, or add --straggler-timeout, or --max-staleness 0 without --stale damp", q, workers, servers)
	}
	return nil
}

// Updates returns the number of steps of a run in which each of all workers makes some.
// With ps-async a step is an update by as many gradients as there are in a quorum; with other
// strategies it is a step of each worker.
func (f *Spec) Updates(steps, workers int) int {
	if f.Strategy != psAsync {
		return steps
	}
	q := max(f.Gradients.Asynchrony.Quorum, 1)
	return (steps*workers + q - 1) / q
}

// asyncServers makes the strategy of a worker that does not wait for all others.
func (r *rank) asyncServers(_ context.Context, b nn.Backend) trainer.Strategy {
	return paramserver.NewAsync(b, r.training.optimizer, serversOf(r), r.training.Spec.policy())
}

// peers makes the strategy of a worker that owns parameters.
func (r *rank) peers(_ context.Context, b nn.Backend) trainer.Strategy {
	return paramserver.NewPeers(b, r.training.optimizer, r.training.Spec.Gradients.Asynchrony.Quorum)
}

// An exchanging is a strategy whose workers exchange messages and do not step together.
type exchanging interface {
	Disconnect(ctx context.Context) error
	Stale() paramserver.Staleness
}

// Disconnect ends the messages of a strategy whose workers do not step together, so that the
// groups can make calls again. All workers call it after trainer.Train.
func Disconnect(ctx context.Context, s trainer.Strategy) error {
	if s, ok := s.(exchanging); ok {
		return s.Disconnect(ctx)
	}
	return nil
}

// Stale returns what became of the gradients after a run whose workers do not step
// together, nil after another.
func Stale(s trainer.Strategy) *event.Staleness {
	of, ok := s.(exchanging)
	if !ok {
		return nil
	}
	n := of.Stale()
	for len(n.Histogram) > 1 && n.Histogram[len(n.Histogram)-1] == 0 {
		n.Histogram = n.Histogram[:len(n.Histogram)-1]
	}
	return &event.Staleness{Gradients: n.Total(), Late: n.Late(), Discarded: n.Discarded(), Mean: n.Mean(), Histogram: n.Histogram}
}

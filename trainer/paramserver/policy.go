package paramserver

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Everyone is a Policy.Quorum: an update needs a gradient of each worker.
const Everyone = math.MaxInt32

// A Policy says which gradients the servers of Async apply, and when.
//
// The staleness of a gradient is the number of updates that its server has made since the
// worker received the values that the gradient was computed on. The zero Policy applies
// every gradient as soon as it comes, however stale.
type Policy struct {
	// Name is what errors and settings call the strategy; "" is "ps-async".
	Name string `json:"name,omitempty"`
	// Quorum is the number of gradients in an update; 0 is 1. If fewer workers are left, an
	// update needs a gradient of each.
	Quorum int `json:"quorum,omitempty"`
	// Timeout makes an update of fewer gradients if the rest do not come within this time
	// after the first. 0 is no limit.
	Timeout time.Duration `json:"timeout,omitempty"`
	// Bounded says that MaxStaleness holds. A gradient that is staler is late.
	Bounded      bool `json:"bounded,omitempty"`
	MaxStaleness int  `json:"max_staleness,omitempty"`
	// Damp applies late gradients: an update is multiplied by the mean of 1/(1+staleness)
	// over its late gradients and of 1 over the others. That is the learning rate of Zhang et
	// al., "Staleness-aware Async-SGD for Distributed Deep Learning" (IJCAI 2016). Without
	// it, late gradients are dropped.
	Damp bool `json:"damp,omitempty"`
}

// Check returns an error if p is out of range.
func (p Policy) Check() error {
	switch {
	case p.Quorum < 0:
		return fmt.Errorf("paramserver: the quorum must be at least 1, not %d", p.Quorum)
	case p.Timeout < 0:
		return fmt.Errorf("paramserver: the timeout of a quorum must be positive, not %v", p.Timeout)
	case p.MaxStaleness < 0:
		return fmt.Errorf("paramserver: the largest staleness must be at least 0, not %d", p.MaxStaleness)
	}
	return nil
}

// CheckServers returns an error if workers could wait for each other forever: each of three
// servers may keep a gradient for its next update, of a worker that another one needs for its own.
// That cannot happen with two servers, because the last to update frees a quorum of workers, who
// then all send to the other. Nor if no gradient may be stale: the first server to make its last
// update frees a quorum, who send it the next gradients.
func (p Policy) CheckServers(workers, servers int) error {
	fresh := p.Bounded && p.MaxStaleness == 0 && !p.Damp
	if q := p.quorum(); q == 1 || q >= workers || servers <= 2 || p.Timeout > 0 || fresh {
		return nil
	}
	return fmt.Errorf("paramserver: with a quorum of %d of %d workers there must be at most 2 servers, not %d: workers could wait for each other forever; set Policy.Timeout, or Bounded with a MaxStaleness of 0 and without Damp", p.quorum(), workers, servers)
}

// String describes p in one line.
func (p Policy) String() string {
	text := []string{p.name()}
	switch {
	case p.Quorum == Everyone:
		text = append(text, "updates of all gradients")
	case p.Quorum > 1:
		text = append(text, fmt.Sprintf("updates of %d gradients", p.Quorum))
	}
	if p.Timeout > 0 {
		text = append(text, fmt.Sprintf("or of fewer after %v", p.Timeout))
	}
	if p.Bounded {
		what := "dropped"
		if p.Damp {
			what = "damped"
		}
		text = append(text, fmt.Sprintf("staler than %d %s", p.MaxStaleness, what))
	}
	return strings.Join(text, ", ")
}

func (p Policy) name() string {
	if p.Name == "" {
		return "ps-async"
	}
	return p.Name
}

func (p Policy) quorum() int { return max(p.Quorum, 1) }

// late reports whether a gradient of this staleness is late.
func (p Policy) late(staleness int) bool { return p.Bounded && staleness > p.MaxStaleness }

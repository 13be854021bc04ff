package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/trainer/job"
)

// The strategies whose name can be followed by an option.
const (
	servedSystem = "ps-sync"  // by the servers
	asyncSystem  = "ps-async" // by the servers
	peersSystem  = "ps-peers" // by the quorum
)

// Systems returns what a scaling table can compare, as named on the command line: the
// strategies of a run. ps-sync and ps-async have one server process. The name can say how
// many they have instead, as ps-sync:2 does. ps-peers:2 has a quorum of 2 gradients, instead of
// as many as there are workers.
func Systems() []string {
	return []string{"allreduce", servedSystem, servedSystem + ":" + job.Colocated, "local-sgd", "diloco", asyncSystem, peersSystem}
}

// A system is a strategy and what follows the colon after its name, such as the number of
// servers.
type system struct{ strategy, option string }

func systemOf(name string) system {
	strategy, option, _ := strings.Cut(name, ":")
	return system{strategy, option}
}

// served reports whether the option is about servers.
func (s system) served() bool { return s.strategy == servedSystem || s.strategy == asyncSystem }

// lockstep reports whether all workers make the same steps.
func (s system) lockstep() bool { return s.strategy != asyncSystem && s.strategy != peersSystem }

// gradients returns the settings of the strategy.
func (s system) gradients() (g job.Gradients) {
	switch {
	case s.served():
		g.Servers = s.option
	case s.strategy == peersSystem:
		g.Asynchrony.Quorum, _ = strconv.Atoi(s.option) // checkSystems has accepted it
	}
	return g
}

// checkSystems reports the first name that is none of Systems, or that comes twice.
func checkSystems(names []string) error {
	for i, name := range names {
		s := systemOf(name)
		_, _, many := strings.Cut(name, ":")
		switch {
		case slices.Contains(names[:i], name):
			return fmt.Errorf("--system names %s twice; for more runs of each, use --trials", name)
		case many && s.served():
			if err := job.CheckServers(s.option); err != nil {
				return fmt.Errorf("--system %s: the servers %w", name, err)
			}
		case many && s.strategy == peersSystem:
			if q, err := strconv.Atoi(s.option); err != nil || q < 1 {
				return fmt.Errorf("--system %s: the quorum must be a number of gradients, at least 1, not %q", name, s.option)
			}
		case !slices.Contains(Systems(), name):
			return fmt.Errorf("--system must be names from %s, or %s:N or %s:N for N servers, or %s:Q for a quorum of Q gradients, not %q",
				strings.Join(Systems(), ","), servedSystem, asyncSystem, peersSystem, name)
		}
	}
	return nil
}

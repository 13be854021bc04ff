package bench

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/trainer/job"
)

// servedSystem is the strategy whose number of servers can follow its name.
const servedSystem = "ps-sync"

// Systems returns what a scaling table can compare, as named on the command line: the
// strategies of a training. ps-sync has one server process. The name can say how many it has
// instead, as ps-sync:2 does.
func Systems() []string {
	return []string{"allreduce", servedSystem, servedSystem + ":" + job.Colocated, "local-sgd", "diloco"}
}

// A system is a strategy and what follows the colon after its name, such as the number of
// servers.
type system struct{ strategy, option string }

func systemOf(name string) system {
	strategy, option, _ := strings.Cut(name, ":")
	return system{strategy, option}
}

// checkSystems reports the first name that is none of Systems, or that comes twice.
func checkSystems(names []string) error {
	for i, name := range names {
		s := systemOf(name)
		_, _, many := strings.Cut(name, ":")
		switch {
		case slices.Contains(names[:i], name):
			return fmt.Errorf("--system names %s twice; for more trainings of each, use --trials", name)
		case many && s.strategy == servedSystem:
			if err := job.CheckServers(s.option); err != nil {
				return fmt.Errorf("--system %s: the servers %w", name, err)
			}
		case !slices.Contains(Systems(), name):
			return fmt.Errorf("--system must be names from %s, or %s:N for N servers, not %q", strings.Join(Systems(), ","), servedSystem, name)
		}
	}
	return nil
}

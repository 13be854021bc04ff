package cli

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/collective/cluster"
)

// adopt takes the job's shape from torchrun, Slurm or mpirun, if one of them
// started this process: it has started one process for each rank, so this one
// runs a single worker. flag names the number of workers of this machine.
func (a *app) adopt(f *placeFlags, workers *int, flag string, given func(string) bool) error {
	if _, isWorker, _ := cluster.FromEnv(); isWorker {
		return nil // the launcher has passed it on in the command line
	}
	l, err := cluster.FromLauncher(os.Getenv)
	if err != nil || l == nil {
		return err
	}
	switch {
	case given(flag) && *workers != l.LocalSize:
		return fmt.Errorf("--%s %d, but %s started %d processes on this machine, and each is a worker: leave --%s out", flag, *workers, l.By, l.LocalSize, flag)
	case given("nodes") && f.nodes != l.Nodes:
		return fmt.Errorf("--nodes %d, but %s started the job on %s: leave --nodes out", f.nodes, l.By, countOf(l.Nodes, "machine"))
	case given("join") && l.Nodes == 1:
		return fmt.Errorf("--join %s, but %s started the whole job on this machine: leave --join out", strings.Join(f.join, ","), l.By)
	case given("rank0"):
		return fmt.Errorf("--rank0 %s, but %s has numbered the ranks: leave --rank0 out", f.rank0, l.By)
	case f.transport == "inproc":
		return fmt.Errorf("--transport inproc is one process, but %s started %d: start ringtrain without it", l.By, l.Size)
	}
	*workers, f.nodes = l.LocalSize, l.Nodes
	a.launched = l
	a.shape = []string{"--" + flag + "=" + strconv.Itoa(l.LocalSize), "--nodes=" + strconv.Itoa(l.Nodes)}
	return nil
}

// unlaunched refuses a command that starts its own workers where each process of
// another launcher would start them all.
func unlaunched(command string) error {
	if _, isWorker, _ := cluster.FromEnv(); isWorker {
		return nil
	}
	l, err := cluster.FromLauncher(os.Getenv)
	if err != nil || l == nil {
		return err
	}
	return fmt.Errorf("%s starts its own workers, and %s has started %d processes: run it without %s", command, l.By, l.Size, l.By)
}

// takeSeat makes c the place that the other launcher gave this process. What the
// flags say wins.
func (a *app) takeSeat(c *cluster.Config, f placeFlags) error {
	at, err := a.launched.Config()
	if err != nil {
		return err
	}
	c.Cluster, c.Node, c.NodeRank, c.Local = cmp.Or(f.cluster, at.Cluster), at.Node, at.NodeRank, at.Local
	if c.Bind = at.Bind; f.bind != "" {
		if c.Bind, err = bindAddress(f); err != nil {
			return err
		}
	}
	switch {
	case a.launched.Rank == 0:
		c.Join = nil
	case len(c.Join) == 0:
		c.Join = at.Join
	}
	return nil
}

// follows reports whether another process of the job shows it to the user.
func (a *app) follows() bool { return a.launched != nil && a.launched.Rank > 0 }

// A follower shows what another process does not know: how this one's worker
// fails.
type follower struct{ display }

func (f follower) emit(event any) {
	if _, lost := event.(*lostEvent); lost {
		f.display.emit(event)
	}
}

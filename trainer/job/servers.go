package job

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/paramserver"
)

// psSync is the strategy with parameter servers.
const psSync = "ps-sync"

// Colocated is the value of Gradients.Servers that makes every worker a server.
const Colocated = "colocated"

// errServers is why a run with parameter servers is not on GPUs.
func (f *Spec) errServers() error {
	return errors.New("parameter servers work in host memory: leave out " + f.servedStrategy())
}

// ServerProcesses returns the number of server processes, 0 if no strategy has any.
func (f *Spec) ServerProcesses() int {
	if !f.serves() || f.Gradients.Servers == Colocated {
		return 0
	}
	n, _ := strconv.Atoi(cmp.Or(f.Gradients.Servers, "1")) // checkServers has accepted it
	return n
}

// processes describes the processes of a job and their groups. It must be the same on all
// machines before anything else is compared, because the first calls depend on it.
func processes(f *Spec) string {
	text := cmp.Or(f.Strategy, allReduce)
	if f.serves() {
		text += " --servers " + cmp.Or(f.Gradients.Servers, "1")
	}
	if restarts(f) > 0 {
		text += " --max-restarts"
	}
	return text
}

// checkServers finds what is wrong with Gradients.Servers.
func (f *Spec) checkServers() error {
	given := f.Gradients.Servers
	if !f.serves() {
		if given != "" {
			return fmt.Errorf("--servers needs --strategy %s or %s, or %[1]s in --switch", psSync, psAsync)
		}
		return nil
	}
	if given == Colocated {
		return nil
	}
	if err := CheckServers(cmp.Or(given, "1")); err != nil {
		return fmt.Errorf("--servers %w", err)
	}
	if l := f.Place.Process.Launched; l != nil {
		return fmt.Errorf("%s starts server processes, and %s has started all processes: use --servers %s", f.servedStrategy(), l.By, Colocated)
	}
	return nil
}

// CheckServers reports why a value cannot be Gradients.Servers. The error lacks a subject.
func CheckServers(given string) error {
	if n, err := strconv.Atoi(given); given != Colocated && (err != nil || n < 1 || n > crew.MaxLocal) {
		return fmt.Errorf("must be %s or a number of processes from 1 to %d, not %q", Colocated, crew.MaxLocal, given)
	}
	return nil
}

// checkServed reports compression that the flag or the config asks for, and servers do not
// support.
func (f *Spec) checkServed(c trainer.Compression) error {
	if f.owned() && c.Form != trainer.Exact {
		return fmt.Errorf("compressed gradients cannot be combined with %s in --strategy or --switch: leave out --compress, and set training.compress to none", f.servedStrategy())
	}
	return nil
}

// parameterServers makes the strategy of a worker.
func (r *rank) parameterServers(ctx context.Context, b nn.Backend) trainer.Strategy {
	if r.training.Spec.asynchronous() {
		return r.asyncServers(ctx, b)
	}
	servers := paramserver.Servers{Group: r.served}
	if r.partners != nil {
		servers.Regroup = r.regroup
	}
	s := paramserver.NewSync(b, r.training.optimizer, servers)
	s.SetBucket(r.training.Spec.Gradients.Bucket)
	return s
}

// serversPlan describes the exchange with servers, or returns plan without them.
func (r *rank) serversPlan(plan string) string {
	if !r.training.Spec.asynchronous() && r.training.Spec.Strategy != psSync {
		return plan
	}
	how := "in ring order"
	if r.training.Spec.asynchronous() {
		how = r.training.Spec.policy().String()
	}
	if r.training.Spec.Strategy == psPeers {
		return fmt.Sprintf("%d workers, each the owner of some parameters, %s", r.group.Size(), how)
	}
	if r.served == nil {
		return fmt.Sprintf("%d workers, each also a parameter server, %s", r.group.Size(), how)
	}
	servers := r.served.Size() - r.group.Size()
	if servers == 1 {
		return fmt.Sprintf("%d workers and 1 parameter server, %s", r.group.Size(), how)
	}
	return fmt.Sprintf("%d workers and %d parameter servers, %s", r.group.Size(), servers, how)
}

// EndServers ends the server processes after a run that has succeeded on all workers.
// All workers call it, with the groups of WorkersOf.
func EndServers(ctx context.Context, workers, served *collective.Group) error {
	if served == nil {
		return nil
	}
	return paramserver.End(ctx, served, workers.Size())
}

// WorkersOf returns the group of the workers in all, the group of a job. served is all if
// there are servers, and nil otherwise. All ranks call it. Close the result before all.
func WorkersOf(ctx context.Context, all *collective.Group) (workers, served *collective.Group, err error) {
	v := all.View()
	if len(v.Ranks(collective.Server)) == 0 {
		return all, nil, nil
	}
	workers, err = all.Sub(ctx, int(v.Members[v.Self].Role), all.Rank())
	return workers, all, err
}

// Serve is the work of a server of s, a rank of all, until the workers call EndServers.
func Serve(ctx context.Context, s *Training, all *collective.Group) error {
	return serve(ctx, s, all, nil)
}

// serve is Serve in a process that may survive the loss of workers.
func serve(ctx context.Context, s *Training, all *collective.Group, left *survivors) error {
	servers, _, err := WorkersOf(ctx, all)
	if err != nil {
		return err
	}
	defer servers.Close()
	b := cpu.New(cpu.Options{})
	defer b.Close()
	k := paramserver.Keeper{Backend: b, Optimizer: s.optimizer}
	if left != nil {
		k.Regroup = left.regroup
	}
	return paramserver.ServeKept(ctx, all, len(all.View().Ranks(collective.Worker)), k)
}

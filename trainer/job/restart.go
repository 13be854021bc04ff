package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/launch"
	"github.com/ringtrain/ringtrain/trainer/paramserver"
)

// envServerDir is the environment variable with the directory where servers keep their
// shares.
const envServerDir = "RINGTRAIN_SERVER_DIR"

// shareFiles matches the files in that directory.
const shareFiles = "server-*.share"

// restarts returns how often servers are started again, 0 if they cannot be.
func restarts(f *Spec) int {
	if f.ServerProcesses() == 0 || f.Place.Transport == crew.TransportInProcess || f.asynchronous() {
		return 0
	}
	return f.Gradients.Restarts
}

// checkRestarts finds what is wrong with Gradients.Restarts and ServerDir, which would
// otherwise have no effect.
func checkRestarts(f *Spec) error {
	g := &f.Gradients
	switch {
	case g.Restarts < 0:
		return fmt.Errorf("--max-restarts must be at least 0, not %d", g.Restarts)
	case g.ServerDir != "" && (f.ServerProcesses() == 0 || f.asynchronous()):
		return fmt.Errorf("--server-dir needs server processes that wait for all workers: leave it out, or use --strategy %s with --servers N", psSync)
	case g.ServerDir != "" && g.Restarts == 0:
		return errors.New("--server-dir has no use without restarts: leave it out, or add --max-restarts 3")
	case g.Restarts > 0 && restarts(f) == 0:
		return fmt.Errorf("--max-restarts starts killed servers again, and this job has no server processes that wait for all workers: leave it out, or use --strategy %s with --servers N", psSync)
	}
	return nil
}

// serversHere returns the number of server processes of this machine. The first machine has
// what is left after the servers have been divided evenly.
func serversHere(f *Spec) int {
	all, nodes := f.ServerProcesses(), max(f.Place.Nodes, 1)
	if nodes == 1 || f.Place.First() {
		return all - all/nodes*(nodes-1)
	}
	return all / nodes
}

// claimServerDir returns the directory where the servers of this machine keep their shares,
// "" if they do not. It is locked until release is called, which removes what they kept.
func claimServerDir(f *Spec) (dir string, release func(), err error) {
	switch {
	case restarts(f) == 0 || serversHere(f) == 0:
		return "", func() {}, nil
	case f.Gradients.ServerDir == "":
		dir, err = tempServerDir()
		return dir, func() { _ = os.RemoveAll(dir) }, err
	}
	dir = absolute(f.Gradients.ServerDir)
	if err := PrepareDir(dir); err != nil {
		return "", nil, fmt.Errorf("--server-dir %s: %w; choose another directory", dir, err)
	}
	unlock, err := LockDirs([]Dir{{"--server-dir", dir}}, launch.LockOptions{Job: f.Place.Cluster, Force: f.Saving.Force})
	if err != nil {
		return "", nil, err
	}
	return dir, func() {
		kept, _ := filepath.Glob(filepath.Join(dir, shareFiles))
		for _, path := range kept {
			_ = os.Remove(path) // what stays only takes up space
		}
		unlock()
	}, nil
}

// tempServerDir creates a temporary directory for servers, and removes those of launchers
// that were killed.
func tempServerDir() (string, error) {
	const prefix = "ringtrain-servers-"
	old, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*"))
	for _, dir := range old {
		tag, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), ".")
		if launch.TagState(tag) == launch.Dead {
			_ = os.RemoveAll(dir) // another user's cannot be removed
		}
	}
	dir, err := os.MkdirTemp("", prefix+launch.Self().Tag()+".*")
	if err != nil {
		return "", fmt.Errorf("a directory for servers: %w: name one with --server-dir, or leave out --max-restarts", err)
	}
	return dir, nil
}

// serveKept is the work of a server process that can be started again. It is a rank of all.
func serveKept(ctx context.Context, w *crew.Worker, all *collective.Group, o optim.Optimizer) error {
	b := cpu.New(cpu.Options{})
	defer b.Close()
	v := all.View()
	workers := len(v.Ranks(collective.Worker))
	path := filepath.Join(os.Getenv(envServerDir), strings.Replace(shareFiles, "*", fmt.Sprint(v.Self), 1))
	var lost *collective.RankError
	err := w.Attend(ctx, all)
	switch {
	case errors.As(err, &lost):
		return nil // the workers may have given up this group; if one of them is lost, the others report it
	case err == nil:
		err = paramserver.ServeKept(ctx, all, workers, paramserver.Keeper{Backend: b, Optimizer: o, Path: path})
	}
	if paramserver.IsServerLost(err, workers) {
		return nil // the launcher starts all servers again
	}
	return err
}

// among returns the group of the workers in all, and how a worker reaches the servers, if
// there are any. end closes the groups.
func among(ctx context.Context, f *Spec, w *crew.Worker, all *collective.Group) (workers *collective.Group, c combining, end func(), err error) {
	if restarts(f) == 0 {
		workers, c.served, err = WorkersOf(ctx, all)
		c.worker, c.survivors = w, newSurvivors(f, w)
		return workers, c, func() { _ = workers.Close() }, err
	}
	c.served, c.worker = all, w
	if c.partners, err = w.Partner(ctx, all, f.Place.JoinTimeout); err != nil {
		return nil, c, nil, err
	}
	return c.partners.Group, c, func() { _ = c.partners.Close() }, nil
}

// shared returns the function that allocates gradients, nil for ordinary memory. Memory shared
// in a group is lost with the group, so jobs that survive losses use ordinary memory and send
// copies.
func shared(f *Spec, w *crew.Worker) func(n int) []float32 {
	if restarts(f) > 0 || survives(f) {
		return nil
	}
	return w.Shared
}

// endServers ends the servers. The job needs none that is lost by now.
func endServers(ctx context.Context, r *rank) error {
	if r.survivors != nil {
		return nil // they have ended with their messages
	}
	err := EndServers(ctx, r.group, r.served)
	if r.partners != nil && paramserver.IsServerLost(err, r.group.Size()) {
		return nil
	}
	return err
}

// regroup returns the group after one in which a server was lost.
func (r *rank) regroup(ctx context.Context, cause error) (*collective.Group, error) {
	crew.TellServerLost(r.events, r.served.Rank(), cause)
	g, err := r.partners.Regroup(ctx)
	if err == nil {
		r.served = g
	}
	return g, err
}

package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// Check reports the first mistake in the fields of f that needs no file to be found. Its
// errors name the flags of the commands. Launch calls it.
func (f *ScalingRun) Check() error {
	sorted := slices.Sorted(slices.Values(f.Workers))
	switch {
	case len(sorted) == 0 || sorted[0] > 1:
		return errors.New("--workers must include 1: growth and scalability are measured against one worker")
	case sorted[0] < 1:
		return fmt.Errorf("--workers must be at least 1 each, not %d", sorted[0])
	case len(slices.Compact(slices.Clone(sorted))) != len(sorted):
		return errors.New("--workers names a number twice; for more runs of each, use --trials")
	case f.Trials < 1:
		return fmt.Errorf("--trials must be at least 1, not %d", f.Trials)
	case f.Steps < 1:
		return fmt.Errorf("--steps must be at least 1, not %d", f.Steps)
	case f.Force && f.Out == "":
		return errors.New("--force needs --out: name the directory to take over")
	case f.Evaluate && f.Compute.Took > 0:
		return errors.New("--evaluate cannot be combined with --compute emulate: emulated workers have no model to evaluate")
	}
	if f.Sparse == trainer.SparseOn.String() && f.Compute.Took > 0 {
		return errors.New("--sparse on cannot be combined with --compute emulate: emulated workers have no rows; use --sparse auto, which sends their gradients whole")
	}
	if err := checkSystems(f.Systems()); err != nil {
		return err
	}
	return f.checkHosts(sorted[len(sorted)-1] + f.mostServers())
}

// checkHosts is Check for what connects the workers and servers. There are at most "most"
// of them.
func (f *ScalingRun) checkHosts(most int) error {
	netns := f.Hosts == Namespaces
	switch {
	case !netns && f.Hosts != "local":
		return fmt.Errorf("--hosts must be local or %s, not %q", Namespaces, f.Hosts)
	case !slices.Contains(cluster.Transports(), f.Transport):
		return fmt.Errorf("--transport must be one of %s, not %q", strings.Join(cluster.Transports(), ", "), f.Transport)
	case netns && f.Transport == cluster.TransportSHM:
		return errors.New("--transport shm cannot be combined with --hosts netns: the links would carry nothing; use --transport tcp")
	case netns && most > launch.MaxNodes:
		return fmt.Errorf("--hosts netns has room for %d workers and servers, not %d", launch.MaxNodes, most)
	case netns && f.Insecure && f.KeyFile != "":
		return errors.New("--insecure cannot be combined with --key-file")
	case !netns && f.Link != "":
		return errors.New("--link needs --hosts netns: only there can the links be limited")
	case !netns && f.Insecure:
		return errors.New("--insecure needs --hosts netns: on this machine alone nothing is encrypted without a key")
	}
	return nil
}

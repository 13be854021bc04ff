package bench

import (
	"context"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// trials makes the trials of one ScalingRun, as processes.
type trials struct {
	*ScalingRun
	options job.Options
	args    func(config, system string) []string
	config  string          // file
	key     string          // file, "" for none
	network *launch.Network // nil: that of this machine
}

// train makes one trial.
func (r *trials) train(ctx context.Context, system string, workers int) (*TrialMeasured, error) {
	s := r.training(r.config, system, workers)
	servers := s.ServerProcesses()
	at, err := r.joinAt(workers + servers)
	if err != nil {
		return nil, crew.Usage(err)
	}
	show := &trialDisplay{Lines: crew.Lines{To: r.options.Stderr}, network: r.network}
	o := r.options
	o.Display, o.Args = show, r.args(r.config, system)
	c := crewAt(at, workers, r.Process, o)
	c.Servers = servers
	c.Network, c.Stopping = r.network, "stopping after this step; once more to stop at once"
	if err := c.Launch(ctx); err != nil {
		return nil, err
	}
	return show.end()
}

// joinAt returns where the workers and servers of a trial find each other.
func (r *trials) joinAt(processes int) (cluster.Config, error) {
	if r.network == nil {
		p := crew.Place{Nodes: 1, KeyFile: r.KeyFile, Transport: r.transport(), Process: r.Process}
		return p.Config(processes, r.options.Stderr)
	}
	return cluster.Config{
		Cluster: crew.OwnCluster(), Nodes: 1, Node: cluster.NodeName(), LocalSize: processes, Transport: r.transport(), KeyFile: r.key, Insecure: r.key == "",
	}, nil
}

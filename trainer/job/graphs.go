package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/device"
)

// checkGraphs returns an error if the user demands graphs and the flags rule them out.
func (s *Training) checkGraphs() error {
	if !s.Spec.Graphs.Demanded() {
		return nil
	}
	why := s.withoutGraphs()
	if !s.Placement.OnGPU() {
		why = errors.New("the workers compute on " + s.Placement.String())
	}
	if why != nil {
		return fmt.Errorf("--graphs %s: %w", s.Spec.Graphs.How, why)
	}
	return nil
}

var errHostAdds = errors.New("gradients are summed in host memory, not by NCCL")

// withoutGraphs returns why the flags rule out recording steps on a GPU, or nil.
func (s *Training) withoutGraphs() error {
	switch {
	case s.micro > 1:
		return errors.New("a step of --accumulate has several micro-batches, and a graph has one")
	case s.Spec.Faithful:
		return errors.New("with --faithful-accumulate, the gradients to sum change from step to step")
	case s.AllWorkers() > 1 && s.Spec.Device.HostAdds(s.Spec.Order.DeviceOrder()):
		return errHostAdds
	}
	return nil
}

// record makes a GPU record steps as graphs, if --graphs asks for it and nothing rules it
// out. The rows of the data are then in the GPU's memory.
func (r *rank) record(ctx context.Context, c *trainer.Config) error {
	s := r.training
	if r.gpu == nil || s.Spec.Graphs.How == device.GraphsOff || s.Spec.Graphs.How == "" {
		return nil
	}
	why := s.withoutGraphs()
	if why == nil && r.group.Size() > 1 && !r.gpu.ByNCCL() {
		why = fmt.Errorf("%w%s", errHostAdds, r.gpu.Without())
	}
	switch {
	case why != nil && s.Spec.Graphs.Demanded():
		return crew.Usage(fmt.Errorf("--graphs %s: %w", s.Spec.Graphs.How, why))
	case why != nil:
		return nil
	}
	sampler, err := data.NewSampler(r.set.Train.Rows, s.Batch, r.group.Rank(), r.group.Size(), s.Spec.Seed)
	if err != nil {
		return err
	}
	c.Train = []trainer.Batches{data.NewResident(r.set.Train, sampler, s.Batch, r.gpu.Backend())}
	c.Recording = &trainer.Recording{Steps: s.Spec.Graphs.PerLaunch, Apart: s.Spec.Graphs.How == device.GraphsApart}
	r.plan += "; each step is a graph"
	if r.group.Size() > 1 {
		if c.Recording.Apart {
			r.plan += " before the sum and one after it"
		}
		c.Recording.Summer = r.gpu.Summer(ctx)
	}
	return nil
}

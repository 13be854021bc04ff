package job

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringtrain/ringtrain/trainer"
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
	case s.Spec.inRounds():
		return errRounds
	case s.micro > 1:
		return errors.New("a step of --accumulate has several micro-batches, and a graph has one")
	case s.Spec.Gradients.Faithful:
		return errors.New("with --faithful-accumulate, the gradients to sum change from step to step")
	case s.AllWorkers() > 1 && s.Spec.Device.HostAdds(s.Spec.Order.DeviceOrder()):
		return errHostAdds
	case s.Problem.Memory().Resident == 0:
		return errors.New("the task cannot keep its rows in the memory of a GPU")
	}
	declared, err := s.Problem.Declare()
	if err == nil && declared.HostLayer() != "" {
		err = fmt.Errorf("the layer %s computes on the host", declared.HostLayer())
	}
	return err
}

// recording makes a GPU record steps as graphs, if --graphs asks for it and nothing rules
// it out; otherwise it returns nil. The rows of the data are then in the GPU's memory.
func (r *rank) recording(ctx context.Context) (*trainer.Recording, error) {
	s := r.training
	if r.gpu == nil || s.Spec.Graphs.How == device.GraphsOff || s.Spec.Graphs.How == "" {
		return nil, nil
	}
	why := s.withoutGraphs()
	if why == nil && r.group.Size() > 1 && !r.gpu.ByNCCL() {
		why = fmt.Errorf("%w%s", errHostAdds, r.gpu.Without())
	}
	switch {
	case why != nil && s.Spec.Graphs.Demanded():
		return nil, crew.Usage(fmt.Errorf("--graphs %s: %w", s.Spec.Graphs.How, why))
	case why != nil:
		return nil, nil
	}
	recording := &trainer.Recording{Steps: s.Spec.Graphs.PerLaunch, Apart: s.Spec.Graphs.How == device.GraphsApart}
	if r.group.Size() > 1 {
		recording.Summer = r.gpu.Summer(ctx)
	}
	return recording, nil
}

// recordingPlan adds a recording to the plan of the exchange.
func recordingPlan(r *trainer.Recording) string {
	switch {
	case r == nil:
		return ""
	case r.Summer != nil && r.Apart:
		return "; each step is a graph before the sum and one after it"
	}
	return "; each step is a graph"
}

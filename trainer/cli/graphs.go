package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// The values of --graphs.
const (
	graphsAuto  = "auto"
	graphsWhole = "whole"
	graphsApart = "apart"
	graphsOff   = "off"
)

// graphFlags say how a GPU is told what to do.
type graphFlags struct {
	graphs    string // "" is off
	perLaunch int    // steps; 0 is 1
}

func (f *graphFlags) register(cmd *cobra.Command) {
	under(cmd, machineFlags, func(flags *pflag.FlagSet) {
		flags.StringVar(&f.graphs, "graphs", graphsAuto, "run steps on GPUs as CUDA graphs, `HOW`: whole (one graph per step, in which NCCL adds up buckets of gradients beside the backward pass), apart (two graphs, and all gradients added up between them), off (launch each kernel) or auto (whole where possible)")
		flags.IntVar(&f.perLaunch, "steps-per-launch", 1, "run `N` steps per graph launch; a stop, or a loss that is not finite, is noticed only after each launch")
	})
}

// check finds what is wrong with the flags alone.
func (f *graphFlags) check() error {
	switch {
	case !slices.Contains([]string{graphsAuto, graphsWhole, graphsApart, graphsOff}, f.graphs):
		return fmt.Errorf("--graphs must be auto, whole, apart or off, not %s", f.graphs)
	case f.perLaunch < 1 || f.perLaunch > mostPerLaunch:
		return fmt.Errorf("--steps-per-launch must be from 1 to %d, not %d", mostPerLaunch, f.perLaunch)
	case f.perLaunch > 1 && f.graphs == graphsOff:
		return fmt.Errorf("--steps-per-launch %d is for graphs: leave --graphs off out", f.perLaunch)
	}
	return nil
}

// mostPerLaunch is more than makes anything faster.
const mostPerLaunch = 64

// demanded reports whether graphs must be.
func (f *graphFlags) demanded() bool { return f.graphs == graphsWhole || f.graphs == graphsApart }

// checkGraphs finds out whether graphs that are demanded can be, as far as can be
// told before anything starts.
func (s *settings) checkGraphs() error {
	if !s.flags.demanded() {
		return nil
	}
	why := s.withoutGraphs()
	if !s.placement.onGPU() {
		why = errors.New("the workers compute on " + s.placement.String())
	}
	if why != nil {
		return fmt.Errorf("--graphs %s: %w", s.flags.graphs, why)
	}
	return nil
}

var errHostAdds = errors.New("gradients are not added up by NCCL, but through the memory of the host")

// withoutGraphs is why steps on a GPU cannot be recorded, as far as flags tell; nil
// if they can.
func (s *settings) withoutGraphs() error {
	switch {
	case s.micro > 1:
		return errors.New("a step of --accumulate has several micro-batches, and a graph has one")
	case s.flags.faithful:
		return errors.New("--faithful-accumulate changes what is added up with each step")
	case s.allWorkers() > 1 && s.flags.hostAdds(s.flags.orderFlags):
		return errHostAdds
	}
	return nil
}

// record has a GPU repeat steps as graphs, if it is to and can. Then the rows of
// the data lie in its memory.
func (r *rank) record(ctx context.Context, c *trainer.Config) error {
	s := r.settings
	if r.gpu == nil || s.flags.graphs == graphsOff || s.flags.graphs == "" {
		return nil
	}
	why := s.withoutGraphs()
	if why == nil && r.group.Size() > 1 && !r.gpu.byNCCL() {
		why = fmt.Errorf("%w%s", errHostAdds, r.gpu.without())
	}
	switch {
	case why != nil && s.flags.demanded():
		return usage(fmt.Errorf("--graphs %s: %w", s.flags.graphs, why))
	case why != nil:
		return nil
	}
	sampler, err := data.NewSampler(r.set.Train.Rows, s.batch, r.group.Rank(), r.group.Size(), s.flags.seed)
	if err != nil {
		return err
	}
	c.Train = []trainer.Batches{data.NewResident(r.set.Train, sampler, s.batch, r.gpu.backend)}
	c.Recording = &trainer.Recording{Steps: s.flags.perLaunch, Apart: s.flags.graphs == graphsApart}
	r.plan += "; each step is a graph"
	if r.group.Size() > 1 {
		if c.Recording.Apart {
			r.plan += " before the sum and one after it"
		}
		c.Recording.Sums = gpuSums{r.gpu, ctx}
	}
	return nil
}

// byNCCL reports whether sums of the ranks are NCCL's.
func (a *accelerator) byNCCL() bool {
	return a.engine != nil && a.engine.Without() == nil && a.order == collective.AnyOrder
}

// forget ends graphs before the engine whose calls are in them. Its failure has
// been told: it is that of a step. It is called from inside Do.
func (t *trainingGPU) forget() { _ = t.backend.Forget() }

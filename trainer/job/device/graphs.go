package device

import (
	"fmt"
	"slices"
)

// The values of Graphs.How.
const (
	GraphsAuto  = "auto"  // one graph for each step if possible
	GraphsWhole = "whole" // one graph for each step, with NCCL's sum in it
	GraphsApart = "apart" // two graphs for each step, and the sum between them
	GraphsOff   = "off"   // no graphs: each kernel is launched by itself
)

// Graphs says how steps are launched on a GPU.
type Graphs struct {
	How       string // "" means GraphsOff
	PerLaunch int    // steps in one launch; 0 means 1
}

// Check reports the first mistake in f. Both fields must be set.
func (f *Graphs) Check() error {
	switch {
	case !slices.Contains([]string{GraphsAuto, GraphsWhole, GraphsApart, GraphsOff}, f.How):
		return fmt.Errorf("--graphs must be auto, whole, apart or off, not %q", f.How)
	case f.PerLaunch < 1 || f.PerLaunch > mostPerLaunch:
		return fmt.Errorf("--steps-per-launch must be from 1 to %d, not %d", mostPerLaunch, f.PerLaunch)
	case f.PerLaunch > 1 && f.How == GraphsOff:
		return fmt.Errorf("--steps-per-launch %d needs graphs: remove --graphs off", f.PerLaunch)
	}
	return nil
}

// CheckPlace reports why workers at p cannot launch steps as f says. Graphs that are demanded
// depend on the job, too.
func (f *Graphs) CheckPlace(p Placement) error {
	if f.PerLaunch > 1 && !p.OnGPU() {
		return fmt.Errorf("--steps-per-launch %d needs GPUs, and the workers compute on %v", f.PerLaunch, p)
	}
	return nil
}

// mostPerLaunch bounds PerLaunch. Longer launches gain nothing.
const mostPerLaunch = 64

// Demanded reports whether the job fails without graphs.
func (f *Graphs) Demanded() bool { return f.How == GraphsWhole || f.How == GraphsApart }

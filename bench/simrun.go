package bench

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ringtrain/ringtrain/collective/schedule"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// MostSimulated is the largest number of workers of a SimulationRun.
const MostSimulated = 4096

// A SimulationRun predicts the steps of a run with many workers, each on a node of its
// own. It sends nothing.
type SimulationRun struct {
	Catalog   *catalog.Catalog
	Config    string            // path of a config; "" for that of a ScalingRun
	Overrides []config.Override // of values in it
	Data      string            // see job.Spec
	Options   catalog.Options   // of Data

	Workers []int
	System  string // names separated by commas: Systems, and allreduce:METHOD
	From    string // scaling.json of a ScalingRun, to which Fabric is fitted; "" for none
	Command string // as a user would type it

	// What follows is that of From unless it is set.

	Compute    time.Duration // per step
	InnerSteps int           // with local-sgd and diloco
	Link       string        // rate of each link
	Cores      int           // that all nodes share; 0: each has its own; negative: that of From, or 0
	Latency    time.Duration // of each message; negative: that of From, or 0
}

// Check reports the first mistake in the fields of f that needs no file to be found. Its
// errors name the flags of the commands.
func (f *SimulationRun) Check() error {
	for _, n := range f.Workers {
		if n < 1 || n > MostSimulated {
			return fmt.Errorf("--workers must be from 1 to %d each, not %d", MostSimulated, n)
		}
	}
	switch {
	case len(f.Workers) == 0:
		return errors.New("--workers is empty: give at least one number")
	case f.Compute == 0 && f.From == "":
		return errors.New("--compute must be the time of a step, such as emulate:116.7ms, or --from must name a file that has it")
	case f.Link == "" && f.From == "":
		return errors.New("--link must be the rate of a link, such as 1gbit, or --from must name a file that has it")
	case f.Compute < 0 || f.InnerSteps < 0:
		return errors.New("--compute and --inner-steps must not be negative")
	}
	if name := f.unread(); name != "" {
		return fmt.Errorf("%s has no effect with --from, whose file has the model: add --config, or leave it out", name)
	}
	if f.Link != "" {
		if _, err := launch.ParseRate(f.Link); err != nil {
			return fmt.Errorf("--link: %w", err)
		}
	}
	var others []string
	for _, name := range f.systems() {
		method, chosen := strings.CutPrefix(name, "allreduce:")
		if !chosen {
			others = append(others, name)
			continue
		}
		if m, err := schedule.ParseMethod(method); err != nil || !slices.Contains(simulatedMethods[:], m) {
			return fmt.Errorf("--system %s: the algorithm must be one of %v, not %q", name, simulatedMethods, method)
		}
	}
	if i := slices.IndexFunc(others, func(name string) bool { return !systemOf(name).lockstep() }); i >= 0 {
		return fmt.Errorf("--system %s: workers that do not step together cannot be simulated; leave it out", others[i])
	}
	return checkSystems(others)
}

// unread returns the first flag that changes how a config is read if none is read, else "".
func (f *SimulationRun) unread() string {
	if f.readsConfig() {
		return ""
	}
	if len(f.Overrides) > 0 {
		return f.Overrides[0].String()
	}
	for _, o := range f.Options.List() {
		if o.Value != "" {
			return "--" + o.Name
		}
	}
	return ""
}

// readsConfig reports whether the model is that of a config, and not that of From.
func (f *SimulationRun) readsConfig() bool { return f.Config != "" || f.From == "" }

func (f *SimulationRun) systems() []string { return strings.Split(f.System, ",") }

// Run predicts. Its errors are the user's mistakes.
func (f *SimulationRun) Run() (*Simulation, error) {
	if err := f.Check(); err != nil {
		return nil, crew.Usage(err)
	}
	b := cpu.New(cpu.Options{})
	defer b.Close()
	s, w := &Simulation{Command: f.Command}, Workload{InnerSteps: job.DefaultInnerSteps}
	var measured []ScalingRow
	var err error
	if f.From != "" {
		if w, measured, err = s.fit(b, f.From); err != nil {
			return nil, crew.Usagef("--from %s: %w", f.From, err)
		}
	}
	if f.readsConfig() {
		if w.Params, err = f.model(b); err != nil {
			return nil, err
		}
	}
	w.Compute, w.InnerSteps = cmp.Or(f.Compute, w.Compute), cmp.Or(f.InnerSteps, w.InnerSteps)
	if f.Link != "" {
		rate, _ := launch.ParseRate(f.Link) // Check has accepted it
		// The latency of emulated links is that of packets that are stored before they pass.
		s.Fabric.Latency = time.Duration(float64(s.Fabric.Latency) * s.Fabric.Rate / float64(rate))
		s.Fabric.Rate = float64(rate)
	}
	if f.Latency >= 0 {
		s.Fabric.Latency = f.Latency
	}
	if f.Cores >= 0 {
		s.Fabric.Cores = f.Cores
	}
	if f.Config != "" || f.Compute > 0 || f.InnerSteps > 0 || f.Link != "" || f.Cores >= 0 || f.Latency >= 0 {
		measured = nil // of something else
	}
	s.Params, s.Compute, s.InnerSteps = w.Params.Count(), w.Compute, w.InnerSteps
	s.simulate(w, f.systems(), f.Workers, measured)
	return s, nil
}

// model makes the parameters of the config on b.
func (f *SimulationRun) model(b nn.Backend) (p *nn.Params, err error) {
	run := ScalingRun{Config: f.Config}
	path, remove, err := run.configFile()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	spec := job.Spec{Catalog: f.Catalog, Config: path, Overrides: f.Overrides, Data: f.Data, Options: f.Options, Workers: 1}
	training, err := spec.Describe()
	if err != nil {
		return nil, err
	}
	probe, err := training.Problem.Probe(b)
	if err != nil {
		return nil, crew.Usage(err)
	}
	return probe.Params, nil
}

// fit fits s.Fabric to the measurements in a file, and returns the workload of these, with
// parameters on b.
func (s *Simulation) fit(b nn.Backend, path string) (w Workload, rows []ScalingRow, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return w, nil, err
	}
	var from Scaling
	if err := json.Unmarshal(text, &from); err != nil {
		return w, nil, fmt.Errorf("reading the measurements: %w", err)
	}
	for _, t := range from.Trials {
		if len(t.Wire) > len(t.Sent) {
			return w, nil, fmt.Errorf("trial %d of %s with %d workers has %d wire_bytes and only %d sent_bytes: the file is damaged; measure again", t.Trial, t.System, t.Workers, len(t.Wire), len(t.Sent))
		}
	}
	if w, err = from.workload(b); err != nil {
		return w, nil, err
	}
	rate, err := launch.ParseRate(from.Link)
	if err != nil {
		return w, nil, fmt.Errorf("its links have no known rate: measure with --hosts netns --link RATE: %w", err)
	}
	if from.Compress != "" {
		return w, nil, fmt.Errorf("its gradients are compressed (%s): measure without", from.Compress)
	}
	rows = ScalingRows(from.Trials)
	if !slices.ContainsFunc(rows, fitted) {
		return w, nil, fmt.Errorf("it has no measurements with 2 to %d workers", mostFitted)
	}
	s.Fabric.Rate, s.Fabric.Cores = float64(rate), from.Processors
	s.Fabric, s.Fitted = s.Fabric.fit(w, rows), true
	return w, rows, nil
}

// workload returns what the workers of s did in each step.
func (s *Scaling) workload(b nn.Backend) (w Workload, err error) {
	emulated, ok := strings.CutPrefix(s.Compute, "emulate:")
	if w.Compute, err = time.ParseDuration(emulated); err != nil || !ok {
		return w, fmt.Errorf("its compute is %s: measure with --compute emulate:TIME", s.Compute)
	}
	if s.Compress != "" {
		if w.compression, err = trainer.ParseCompression(s.Compress); err != nil {
			return w, err
		}
	}
	builder := nn.NewBuilder(0)
	for i, n := range s.Lens {
		builder.Param(fmt.Sprint("parameter ", i), []int{n}, nn.Zeros)
	}
	if w.Params, err = builder.Build(b); err != nil {
		return w, fmt.Errorf("its parameters: %w", err)
	}
	w.InnerSteps, w.overheads = max(s.InnerSteps, 1), map[string]float64{}
	for _, r := range ScalingRows(s.Trials) {
		if r.Workers > 1 {
			continue
		}
		over := 1e6*r.StepMs - float64(w.Compute)
		if systemOf(r.System).strategy == servedSystem { // one worker has an exchange, too
			over -= 1e6 * r.Exchange
		}
		w.overheads[r.System] = max(over, 0)
	}
	return w, nil
}

package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ringtrain/ringtrain/collective/schedule"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/job/machine"
)

// An estimate is what a training would take, in bytes for one worker unless
// said otherwise.
type estimate struct {
	Workers     int    `json:"workers"`
	Batch       int    `json:"batch"` // rows of one worker in one step
	Parameters  int    `json:"parameters"`
	Values      int    `json:"values_bytes"`
	Gradients   int    `json:"gradients_bytes"`
	Slots       int    `json:"slots_bytes"`       // of the optimizer
	Compression int    `json:"compression_bytes"` // what it keeps back, and packed gradients
	Activations int    `json:"activations_bytes"` // of a forward and a backward pass
	Data        int    `json:"data_bytes"`        // dataset and batches
	Total       int    `json:"total_bytes"`       // of all workers of this machine
	Checkpoint  int    `json:"checkpoint_bytes"`  // of one on disk
	Wire        int    `json:"wire_bytes"`        // sent by one worker in one step
	Plan        string `json:"plan"`

	Ratio float64 `json:"compression_ratio"` // what would be sent without compression, as a multiple
}

// mostEstimated is the workers that an estimate is made for: more than a job can
// have, and few enough to multiply bytes with.
const mostEstimated = 1 << 20

func (a *app) estimateCommand() *cobra.Command {
	f := trainFlags{}
	asJSON := false
	cmd := &cobra.Command{
		Use:   "estimate CONFIG [flags] [--section.key VALUE ...]",
		Short: "Estimate the memory and traffic of a training",
		Long: `Estimate how many parameters the model of a config has, how much memory a training takes,
and how many bytes each worker sends per step. Nothing is trained: one batch of zeros goes
through the model, to measure the activations.`,
		Example: "  ringtrain estimate examples/mnist.cfg --workers 16 --batch 64",
		Args:    oneConfig("estimate"),
		RunE: func(cmd *cobra.Command, args []string) error {
			given := cmd.Flags().Changed
			if given("workers") && f.workers < 1 {
				return usage(errors.New("--workers must be at least 1"))
			}
			if given("batch") && f.batch < 1 {
				return usage(errors.New("--batch must be at least 1"))
			}
			if err := f.checkCompress(given); err != nil {
				return usage(err)
			}
			s, err := a.describe(args[0], f)
			if err != nil {
				return err
			}
			if s.workers > mostEstimated {
				return usagef("--workers must be at most %d, not %d", mostEstimated, s.workers)
			}
			e, err := s.estimate()
			if err != nil {
				return err
			}
			if asJSON {
				return a.writeJSON(e)
			}
			e.write(a)
			return nil
		},
	}
	cmd.Flags().IntVar(&f.workers, "workers", 0, "`N` workers in all (default ray.num_workers of the config, or 1)")
	cmd.Flags().IntVar(&f.batch, "batch", 0, "`ROWS` of each worker in one step (default training.batch_size of the config)")
	cmd.Flags().StringVar(&f.data, "data", "digits", dataUsage)
	f.addCompress(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// estimate measures the model on a batch of zeros.
func (s *settings) estimate() (*estimate, error) {
	inner := cpu.New(cpu.Options{})
	defer inner.Close()
	backend := &meter{Backend: inner}
	layers, err := s.layers()
	if err != nil {
		return nil, usage(err)
	}
	info := s.source.Info
	features := info.Height * info.Width
	model, err := nn.NewClassifier(backend, layers, []int{features}, 10, 0)
	if err != nil {
		return nil, usage(err)
	}
	if need, room := 4*float64(features)*float64(s.batch), machine.Memory(); need > float64(room) {
		return nil, usagef("--batch %d: its rows take %.3g GB, more than the %.3g GB of memory of this machine", s.batch, need/1e9, float64(room)/1e9)
	}
	p := model.Params()
	arena := 4 * p.Values.Len()
	backend.Recycle()
	batch := nn.Batch{X: nn.Tensor{Shape: []int{s.batch, features}, Data: backend.Alloc(s.batch * features)}, Labels: backend.AllocInts(s.batch)}
	if _, _, err := model.Learn(&nn.Pass{Backend: backend, Train: true}, batch); err != nil {
		return nil, err
	}
	e := &estimate{
		Workers: s.workers, Batch: s.batch, Parameters: p.Count(), Values: arena, Gradients: arena * max(s.flags.accumulate, 1),
		Slots: arena * len(s.optimizer.Slots()), Activations: backend.bytes,
		Data: s.footprint(info.TrainRows+info.TestRows, features) / s.workers,
	}
	e.Checkpoint = 4 * e.Parameters * (1 + len(s.optimizer.Slots()))
	e.exchange(p, s.compress)
	e.Total = e.Workers * (e.Values + e.Gradients + e.Slots + e.Compression + e.Activations + e.Data)
	return e, nil
}

// exchange completes what the exchange of gradients takes.
func (e *estimate) exchange(p *nn.Params, c trainer.Compression) {
	n, size := p.Grads.Len(), e.Workers
	plan := schedule.PlanReduce(size, n, 4, true, true)
	e.Plan, e.Wire, e.Ratio = planText(plan, size), plan.Sent(size, 4*n), 1
	if c.Form == trainer.Exact {
		return
	}
	plain, packed := e.Wire, c.Packed(p, trainer.DefaultBucket)
	e.Compression = 2 * 4 * n // what was lost before, and in the step
	e.Checkpoint += 4 * e.Parameters * size
	if t, summed := c.Sums(); summed {
		plan = schedule.PlanReduce(size, n, t.Size(), true, false)
		e.Plan, e.Wire = planText(plan, size)+fmt.Sprintf(", as %v", t), plan.Sent(size, packed)
		e.Compression += packed
	} else {
		e.Plan, e.Wire = gatherText(c, size), schedule.Gathered(size, packed)
		e.Compression += size * packed
	}
	e.Ratio = ratio(plain, e.Wire)
	if size > 1 {
		e.Plan += fmt.Sprintf("; without compression %.3g times as much", e.Ratio)
	}
}

func (e *estimate) write(a *app) {
	for _, line := range []struct {
		name  string
		bytes int
		note  string
	}{
		{"values", e.Values, "of each worker"},
		{"gradients", e.Gradients, "an arena for each micro-batch"},
		{"optimizer", e.Slots, "its slots"},
		{"compression", e.Compression, "what it keeps back, and packed gradients"},
		{"activations", e.Activations, fmt.Sprintf("of a batch of %d", e.Batch)},
		{"data", e.Data, "the whole set, and batches"},
		{"all workers", e.Total, fmt.Sprintf("%d on one machine", e.Workers)},
		{"checkpoint", e.Checkpoint, "each, on disk"},
		{"sent in a step", e.Wire, "by each worker: " + e.Plan},
	} {
		if line.name == "values" {
			fmt.Fprintf(a.stdout, "%-15s %12d\n", "parameters", e.Parameters)
		}
		fmt.Fprintf(a.stdout, "%-15s %12d bytes  %s\n", line.name, line.bytes, line.note)
	}
}

// A meter counts the temporary memory of a pass.
type meter struct {
	nn.Backend
	bytes    int
	products int // multiply-adds of the largest convolution of a row
}

// Conv2D counts.
func (m *meter) Conv2D(y, x, w, b nn.Buffer, s nn.Window) {
	m.products = max(m.products, s.Plane()*w.Len())
	m.Backend.Conv2D(y, x, w, b, s)
}

// Temp counts.
func (m *meter) Temp(n int) nn.Buffer {
	m.bytes += 4 * n
	return m.Backend.Temp(n)
}

// Recycle begins to count.
func (m *meter) Recycle() {
	m.bytes = 0
	m.Backend.Recycle()
}

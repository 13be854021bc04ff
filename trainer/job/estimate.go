package job

import (
	"fmt"

	"github.com/ringtrain/ringtrain/collective/schedule"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/job/machine"
)

// An Estimate is the memory and traffic of a run, in bytes for one worker unless
// said otherwise.
type Estimate struct {
	Workers     int    `json:"workers"`
	Batch       int    `json:"batch"` // rows of one worker in one step
	Parameters  int    `json:"parameters"`
	Values      int    `json:"values_bytes"`
	Gradients   int    `json:"gradients_bytes"`
	Slots       int    `json:"slots_bytes"`       // of the optimizer
	Compression int    `json:"compression_bytes"` // residuals and packed gradients
	Activations int    `json:"activations_bytes"` // of a forward and a backward pass
	Data        int    `json:"data_bytes"`        // dataset and batches
	Total       int    `json:"total_bytes"`       // of all workers of this machine
	Checkpoint  int    `json:"checkpoint_bytes"`  // of one on disk, at most: the best weights may be the last
	Wire        int    `json:"wire_bytes"`        // sent by one worker in one step
	Plan        string `json:"plan"`

	Ratio float64 `json:"compression_ratio"` // bytes sent without compression, divided by Wire
}

// Estimate runs the model on a batch of zeros and measures it. It refuses strategies with
// owners of parameters, whose memory and traffic it does not know.
func (s *Training) Estimate() (*Estimate, error) {
	if s.Spec.owned() {
		return nil, crew.Usagef("--strategy %s: estimate knows %s, %s and %s", s.Spec.servedStrategy(), allReduce, localSGD, diLoCo)
	}
	inner := cpu.New(cpu.Options{})
	defer inner.Close()
	backend := &meter{Backend: inner}
	probe, err := s.Problem.Probe(backend)
	if err != nil {
		return nil, crew.Usage(err)
	}
	if need, room := float64(s.Problem.Memory().Row)*float64(s.Batch), machine.Memory(); need > float64(room) {
		return nil, crew.Usagef("--batch %d: its rows take %.3g GB, more than the %.3g GB of memory of this machine", s.Batch, need/1e9, float64(room)/1e9)
	}
	p := probe.Params
	arena := 4 * p.Values.Len()
	backend.Recycle()
	if err := probe.Learn(&nn.Pass{Backend: backend, Train: true}, s.Batch); err != nil {
		return nil, err
	}
	e := &Estimate{
		Workers: s.Workers, Batch: s.Batch, Parameters: p.Count(), Values: arena, Gradients: arena * max(s.Spec.Accumulate, 1),
		Slots: arena * (len(s.optimizer.Slots()) + s.Spec.roundArenas()), Activations: backend.bytes,
		Data: s.footprint() / s.Workers,
	}
	e.Checkpoint = 4 * e.Parameters * (1 + len(s.optimizer.Slots()))
	if s.Spec.inRounds() { // what every worker has, within a round
		e.Checkpoint = 4 * e.Parameters * (s.Workers*(1+len(s.optimizer.Slots())) + s.Spec.roundArenas() - 1)
	}
	if s.searchesBest(trainer.Best{}) {
		e.Checkpoint += 4 * e.Parameters
	}
	e.exchange(p, s.Compression)
	if s.Spec.inRounds() {
		e.Wire, e.Plan = e.Wire/s.Spec.rounds().Steps, e.Plan+s.Spec.roundsPlan()
	}
	e.Total = e.Workers * (e.Values + e.Gradients + e.Slots + e.Compression + e.Activations + e.Data)
	return e, nil
}

// exchange adds the cost of exchanging the gradients.
func (e *Estimate) exchange(p *nn.Params, c trainer.Compression) {
	n, size := p.Grads.Len(), e.Workers
	plan := schedule.PlanReduce(size, n, 4, true, true)
	e.Plan, e.Wire, e.Ratio = planText(plan, size), plan.Sent(size, 4*n), 1
	if c.Form == trainer.Exact {
		return
	}
	plain, packed := e.Wire, c.Packed(p, trainer.DefaultBucket)
	e.Compression = 2 * 4 * n // the residual, and that of the step
	e.Checkpoint += 4 * e.Parameters * size
	if t, summed := c.SumType(); summed {
		plan = schedule.PlanReduce(size, n, t.Size(), true, false)
		e.Plan, e.Wire = planText(plan, size)+fmt.Sprintf(", as %v", t), plan.Sent(size, packed)
		e.Compression += packed
	} else {
		e.Plan, e.Wire = gatherText(c, size), schedule.Gathered(size, packed)
		e.Compression += size * packed
	}
	e.Ratio = ratio(plain, e.Wire)
	if size > 1 {
		e.Plan += fmt.Sprintf("; %.3g times as many bytes without compression", e.Ratio)
	}
}

// A meter is a Backend that measures passes.
type meter struct {
	nn.Backend
	bytes    int // temporary memory since the last Recycle
	products int // multiply-adds per row of the largest convolution
	// convGrad, if not nil, is called for the gradient of each convolution.
	convGrad func(products, weights, filters int)
}

// Conv2D implements nn.Backend.
func (m *meter) Conv2D(y, x, w, b nn.Buffer, s nn.Window) {
	m.products = max(m.products, s.Plane()*w.Len())
	m.Backend.Conv2D(y, x, w, b, s)
}

// Conv2DGrad implements nn.Backend.
func (m *meter) Conv2DGrad(dw, db, dy, x nn.Buffer, s nn.Window) {
	if m.convGrad != nil {
		m.convGrad(s.Plane()*dw.Len(), dw.Len(), db.Len())
	}
	m.Backend.Conv2DGrad(dw, db, dy, x, s)
}

// Temp implements nn.Backend.
func (m *meter) Temp(n int) nn.Buffer {
	m.bytes += 4 * n
	return m.Backend.Temp(n)
}

// Recycle implements nn.Backend.
func (m *meter) Recycle() {
	m.bytes = 0
	m.Backend.Recycle()
}

package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// A Simulation is a table of predicted steps.
type Simulation struct {
	Command    string        `json:"command"`
	Params     int           `json:"params"` // of the model
	Compute    time.Duration `json:"compute_ns"`
	InnerSteps int           `json:"inner_steps"` // with local-sgd and diloco
	Fabric     Fabric        `json:"fabric"`
	Fitted     bool          `json:"fitted"` // the Fabric's latency and processor times, to measurements with at most 4 workers

	Rows    []SimulatedRow `json:"rows"`
	Methods []MethodRow    `json:"methods"`
}

// A SimulatedRow predicts a step of one system with one number of workers.
type SimulatedRow struct {
	System  string  `json:"system"`
	Workers int     `json:"workers"`
	How     string  `json:"how"` // the algorithm
	StepMs  float64 `json:"step_ms"`
	BoundMs float64 `json:"bound_ms"` // that bytes, links and the order of final gradients allow
	// Growth is T(N)/T(1), ideally 1, and Scalability N*T(1)/T(N), ideally N.
	Growth      float64 `json:"growth"`
	Scalability float64 `json:"scalability"`
	MeasuredMs  float64 `json:"measured_ms,omitempty"` // 0: not measured
}

// Off returns by which part of the measured time the prediction is too long.
func (r SimulatedRow) Off() float64 { return r.StepMs/r.MeasuredMs - 1 }

// A MethodRow predicts how long each algorithm takes to sum all gradients in one piece.
type MethodRow struct {
	Workers int                `json:"workers"`
	Ms      map[string]float64 `json:"ms"` // by algorithm
	Fastest string             `json:"fastest"`
}

// simulate predicts all rows. measured may be empty.
func (s *Simulation) simulate(w Workload, systems []string, workers []int, measured []ScalingRow) {
	for _, system := range systems {
		one := s.Fabric.predict(w, system, 1).step
		for _, n := range workers {
			p := s.Fabric.predict(w, system, n)
			r := SimulatedRow{System: system, Workers: n, How: p.how, StepMs: p.step / 1e6, BoundMs: p.bound / 1e6}
			r.Growth, r.Scalability = scale(n, one, p.step)
			if m, ok := rowOf(measured, system, n); ok {
				r.MeasuredMs = m.StepMs
			}
			s.Rows = append(s.Rows, r)
		}
	}
	for _, n := range workers {
		if n < 2 {
			continue
		}
		times := s.Fabric.methodTimes(w.Params, n)
		r := MethodRow{Workers: n, Ms: map[string]float64{}}
		for i, m := range simulatedMethods {
			r.Ms[m.String()] = times[i] / 1e6
		}
		r.Fastest = simulatedMethods[slices.Index(times, slices.Min(times))].String()
		s.Methods = append(s.Methods, r)
	}
}

// Text writes the tables for a terminal.
func (s *Simulation) Text(w io.Writer) error {
	var b strings.Builder
	fact := func(name, text string) { fmt.Fprintf(&b, "%-9s %s\n", name+":", text) }
	fact("model", plural(s.Params, "parameter"))
	fact("compute", s.Compute.String()+" per step")
	fact("links", s.Fabric.String())
	if s.Fitted {
		fact("fitted", fmt.Sprintf("latency and processor times, to measurements with at most %d workers", mostFitted))
	}
	fact("command", s.Command)
	fmt.Fprintf(&b, "\nPredicted time of a step, the least that bytes, links and the order of final\ngradients allow, and what was measured.\n%s\n\n", simulatedRatios)
	s.steps().text(&b)
	if len(s.Methods) > 0 {
		fmt.Fprintf(&b, "\nPredicted time of summing all gradients in one piece, in ms.\n\n")
		s.methods().text(&b)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// simulatedRatios explains the last columns of a table of steps.
const simulatedRatios = "growth T(N)/T(1), ideally 1; scalability N*T(1)/T(N), ideally N."

// steps returns the table of steps.
func (s *Simulation) steps() *grid {
	g := &grid{head: []string{"system", "workers", "ms/step", "bound", "growth", "scalability", "measured", "off", "how"}}
	for _, r := range s.Rows {
		known := r.MeasuredMs > 0
		g.add(r.System, fmt.Sprint(r.Workers), fmt.Sprintf("%.2f", r.StepMs), fmt.Sprintf("%.2f", r.BoundMs), fmt.Sprintf("%.2f", r.Growth),
			fmt.Sprintf("%.2f", r.Scalability), cell(known, "%.2f", r.MeasuredMs), cell(known, "%+.1f %%", 100*r.Off()), r.How)
	}
	return g
}

// methods returns the table of algorithms.
func (s *Simulation) methods() *grid {
	g := &grid{head: []string{"workers"}}
	for _, m := range simulatedMethods {
		g.head = append(g.head, m.String())
	}
	g.head = append(g.head, "fastest")
	for _, r := range s.Methods {
		cells := []string{fmt.Sprint(r.Workers)}
		for _, m := range simulatedMethods {
			cells = append(cells, fmt.Sprintf("%.2f", r.Ms[m.String()]))
		}
		g.add(append(cells, r.Fastest)...)
	}
	return g
}

// String describes the links.
func (f Fabric) String() string {
	text := fmt.Sprintf("%.4g Gbit/s each way, %v and at each end %v and %.3g ns per byte for a message", f.Rate/1e9, f.Latency, f.Message, f.PerByte)
	if f.Cores > 0 {
		text += fmt.Sprintf("; all nodes share %s", plural(f.Cores, "core"))
	}
	return text
}

// WriteJSON writes the simulation as one object.
func (s *Simulation) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(s)
}

package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ringtrain/ringtrain/collective/cluster"
)

// CoreBound is the load of the host's processors above which they, rather than the
// links or the algorithm, may determine the time. It counts in the busiest quarter of the
// time, because workers that wait instead of computing leave the processors idle until they
// exchange gradients.
const CoreBound = .85

// A Trial is one run with one number of workers. Every worker takes all the steps
// on its own rows, so ideally the time does not depend on their number.
type Trial struct {
	System  string  `json:"system"`
	Workers int     `json:"workers"`
	Servers int     `json:"servers,omitempty"` // processes besides the workers; their ranks follow
	Trial   int     `json:"trial"`             // counts from 1
	Steps   int     `json:"steps"`
	Seconds float64 `json:"seconds"` // of all steps and evaluations, on the slowest rank

	Split
	Used     float64 `json:"gradients_used_percent,omitempty"` // in updates; 0 if workers step together and all are
	StepSent int64   `json:"step_sent_bytes"`                  // per step, by the busiest rank
	Sent     []int64 `json:"sent_bytes"`                       // by rank, in the whole run, including its start and end
	Wire     []int64 `json:"wire_bytes,omitempty"`             // the same as counted at the rank's link; nil if it is not counted
	Busy     float64 `json:"busy"`                             // load of the host's processors, 0 to 1; negative if unknown
	Peak     float64 `json:"busy_peak"`                        // Busy in the busiest quarter of the time
	Links    []Link  `json:"links"`                            // of all pairs of ranks
}

// A Split says where the time of a step goes, in milliseconds. The fields add up to
// the step.
type Split struct {
	Compute    float64 `json:"compute_ms"`    // batch, forward and backward; mean of the ranks
	Exchange   float64 `json:"exchange_ms"`   // of the gradients, as far as it does not overlap with compute, on the rank that waited least
	Optimizer  float64 `json:"optimizer_ms"`  // mean of the ranks
	Evaluation float64 `json:"evaluation_ms"` // mean of the ranks
	Idle       float64 `json:"idle_ms"`       // the rest, mostly waiting for slower ranks
}

func (s Split) parts() []float64 {
	return []float64{s.Compute, s.Exchange, s.Optimizer, s.Evaluation, s.Idle}
}

// A Link says what carries the messages between one rank and some higher ones.
type Link struct {
	Rank      int    `json:"rank"`
	Peers     string `json:"peers"` // such as "1-3,5"
	Transport string `json:"transport"`
}

// Links returns the links of all pairs of ranks.
func Links(ranks int, transport func(a, b int) string) []Link {
	links := []Link{} // not nil, so that one rank has an empty array in JSON
	for a := range ranks {
		for b := a + 1; b < ranks; {
			end, kind := b+1, transport(a, b)
			for end < ranks && transport(a, end) == kind {
				end++
			}
			peers := fmt.Sprint(b)
			if end-1 > b {
				peers = fmt.Sprintf("%d-%d", b, end-1)
			}
			i := slices.IndexFunc(links, func(l Link) bool { return l.Rank == a && l.Transport == kind })
			if i < 0 {
				links = append(links, Link{Rank: a, Peers: peers, Transport: kind})
			} else {
				links[i].Peers += "," + peers
			}
			b = end
		}
	}
	return links
}

// WireTolerance is the relative difference allowed between the bytes that we count and
// the bytes on the wire.
const WireTolerance = .05

// CheckWire returns an error if ranks bypassed the links whose bytes are counted.
func (t Trial) CheckWire() error {
	for _, l := range t.Links {
		if l.Transport != cluster.TransportTCP {
			return fmt.Errorf("rank %d reaches ranks %s over %s, which bypasses the measured links", l.Rank, l.Peers, l.Transport)
		}
	}
	for rank, sent := range t.Sent {
		if rank < len(t.Wire) && float64(t.Wire[rank]) < float64(sent)*(1-WireTolerance) {
			return fmt.Errorf("rank %d sent %d bytes, but its link carried only %d: the rest bypassed it", rank, sent, t.Wire[rank])
		}
	}
	return nil
}

// A ScalingRow summarizes the trials of one system with one number of workers.
type ScalingRow struct {
	System  string  `json:"system"`
	Workers int     `json:"workers"`
	Trials  int     `json:"trials"`
	Seconds float64 `json:"seconds"`     // mean over the trials
	Std     float64 `json:"std_seconds"` // sample standard deviation; 0 for one trial
	StepMs  float64 `json:"step_ms"`
	StepStd float64 `json:"std_step_ms"`
	// Bound is the time of a step that bytes, links, compute and the order of final gradients
	// allow, in milliseconds, or 0 if it is unknown.
	Bound float64 `json:"bound_ms,omitempty"`
	// Growth is T(N)/T(1), ideally 1, and Scalability N*T(1)/T(N), ideally N.
	Growth      float64 `json:"growth"`
	Scalability float64 `json:"scalability"`

	Split
	Used      float64 `json:"gradients_used_percent,omitempty"`
	StepSent  int64   `json:"step_sent_bytes"`
	Sent      int64   `json:"sent_bytes"`           // per trial, by the busiest rank
	Wire      int64   `json:"wire_bytes,omitempty"` // of the same rank
	WireOff   float64 `json:"wire_off"`             // largest relative difference of Wire and Sent over ranks and trials
	Busy      float64 `json:"busy"`
	Peak      float64 `json:"busy_peak"`
	CoreBound bool    `json:"core_bound"`
}

// Speedup returns T(1)/T(N), ideally 1, because every worker takes all the steps.
func (r ScalingRow) Speedup() float64 { return 1 / r.Growth }

// ScalingRows returns the rows of trials, by system, then by workers. Growth and
// Scalability are NaN for a system without a trial with one worker, and for times of 0.
func ScalingRows(trials []Trial) []ScalingRow {
	var rows []ScalingRow
	grouped := map[[2]string][]Trial{}
	for _, t := range trials {
		key := [2]string{t.System, fmt.Sprint(t.Workers)}
		if grouped[key] == nil {
			rows = append(rows, ScalingRow{System: t.System, Workers: t.Workers})
		}
		grouped[key] = append(grouped[key], t)
	}
	slices.SortStableFunc(rows, func(a, b ScalingRow) int {
		return cmp.Or(cmp.Compare(a.System, b.System), cmp.Compare(a.Workers, b.Workers))
	})
	one := map[string]float64{}
	for i := range rows {
		r := &rows[i]
		r.summarize(grouped[[2]string{r.System, fmt.Sprint(r.Workers)}])
		if r.Workers == 1 {
			one[r.System] = r.StepMs
		}
	}
	for i := range rows {
		first := one[rows[i].System]
		if first == 0 || rows[i].StepMs == 0 { // the ratios could be infinite, which JSON does not have
			first = math.NaN()
		}
		rows[i].Growth, rows[i].Scalability = scale(rows[i].Workers, first, rows[i].StepMs)
	}
	return rows
}

// scale returns the ratios for the times with one worker and with n.
func scale(n int, one, many float64) (growth, scalability float64) {
	return many / one, float64(n) * one / many
}

// summarize fills in the means of the trials, of which there is at least one.
func (r *ScalingRow) summarize(trials []Trial) {
	r.Trials = len(trials)
	of := func(get func(Trial) float64) float64 {
		mean, _ := meanStd(trials, get)
		return mean
	}
	r.Seconds, r.Std = meanStd(trials, func(t Trial) float64 { return t.Seconds })
	r.StepMs, r.StepStd = meanStd(trials, func(t Trial) float64 { return 1000 * t.Seconds / float64(max(t.Steps, 1)) })
	r.Split = Split{
		Compute: of(func(t Trial) float64 { return t.Compute }), Exchange: of(func(t Trial) float64 { return t.Exchange }),
		Optimizer: of(func(t Trial) float64 { return t.Optimizer }), Evaluation: of(func(t Trial) float64 { return t.Evaluation }),
		Idle: of(func(t Trial) float64 { return t.Idle }),
	}
	r.Used = of(func(t Trial) float64 { return t.Used })
	r.Busy = of(func(t Trial) float64 { return t.Busy })
	r.Peak = of(func(t Trial) float64 { return t.Peak })
	r.CoreBound = max(r.Busy, r.Peak) > CoreBound
	r.StepSent = int64(math.Round(of(func(t Trial) float64 { return float64(t.StepSent) })))
	r.Sent = int64(math.Round(of(func(t Trial) float64 { sent, _ := t.most(); return float64(sent) })))
	r.Wire = int64(math.Round(of(func(t Trial) float64 { _, wire := t.most(); return float64(wire) })))
	for _, t := range trials {
		for rank, wire := range t.Wire {
			if sent := float64(t.Sent[rank]); sent > 0 {
				r.WireOff = max(r.WireOff, math.Abs(float64(wire)-sent)/sent)
			}
		}
	}
}

// most returns what the busiest rank sent, as counted by us and by its link.
func (t Trial) most() (sent, wire int64) {
	for rank, n := range t.Sent {
		if n > sent || rank == 0 {
			sent, wire = n, 0
			if rank < len(t.Wire) {
				wire = t.Wire[rank]
			}
		}
	}
	return sent, wire
}

// meanStd returns the mean and the sample standard deviation, which is 0 for one value.
func meanStd[T any](all []T, get func(T) float64) (mean, std float64) {
	for _, x := range all {
		mean += get(x)
	}
	mean /= float64(len(all))
	if len(all) < 2 {
		return mean, 0
	}
	for _, x := range all {
		std += (get(x) - mean) * (get(x) - mean)
	}
	return mean, math.Sqrt(std / float64(len(all)-1))
}

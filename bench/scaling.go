package bench

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// CoreBound is the share of the host's processors beyond which they, and not
// the links or the algorithm, may decide what was measured.
const CoreBound = .85

// Systems are the ways of training together that a scaling table can compare,
// by the names that a command line gives them.
func Systems() []string { return []string{"allreduce"} }

// A Trial is one training by one number of workers. Every worker makes all the
// steps, each on rows of its own, so ideally the time does not depend on their
// number.
type Trial struct {
	System  string  `json:"system"`
	Workers int     `json:"workers"`
	Trial   int     `json:"trial"` // counts from 1
	Steps   int     `json:"steps"`
	Seconds float64 `json:"seconds"` // of all steps and evaluations, on the slowest rank

	Split
	StepSent int64   `json:"step_sent_bytes"`      // of one step, by the rank that sends the most
	Sent     []int64 `json:"sent_bytes"`           // by rank, of the whole training, its beginning and end included
	Wire     []int64 `json:"wire_bytes,omitempty"` // the same where the rank's link is counted; nil if it is not
	Busy     float64 `json:"busy"`                 // share of the host's processors; negative if it is not known
	Links    []Link  `json:"links"`                // of all pairs of ranks
}

// A Split says where the time of a step goes, in milliseconds. Together they
// are the step.
type Split struct {
	Compute    float64 `json:"compute_ms"`    // batch, forward and backward; the mean of the ranks
	Exchange   float64 `json:"exchange_ms"`   // of the gradients, as far as it is not hidden behind compute, on the rank that waited least
	Optimizer  float64 `json:"optimizer_ms"`  // the mean of the ranks
	Evaluation float64 `json:"evaluation_ms"` // the mean of the ranks
	Idle       float64 `json:"idle_ms"`       // the rest: waiting for slower ranks, mostly
}

func (s Split) parts() []float64 {
	return []float64{s.Compute, s.Exchange, s.Optimizer, s.Evaluation, s.Idle}
}

// A Link is what carries the messages between one rank and some of those above
// it.
type Link struct {
	Rank      int    `json:"rank"`
	Peers     string `json:"peers"` // such as "1-3,5"
	Transport string `json:"transport"`
}

// Links are the links of all pairs of so many ranks.
func Links(ranks int, transport func(a, b int) string) []Link {
	links := []Link{} // of one rank too, which has none: an array in JSON
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

// WireTolerance is how far, as a share of the one, bytes counted by ourselves
// and bytes on the wire may differ.
const WireTolerance = .05

// CheckWire refuses a trial whose ranks were to talk over links that are
// counted, and did not.
func (t Trial) CheckWire() error {
	for _, l := range t.Links {
		if l.Transport != "tcp" {
			return fmt.Errorf("rank %d talks with %s over %s, past the links that were to be measured", l.Rank, l.Peers, l.Transport)
		}
	}
	for rank, sent := range t.Sent {
		if rank < len(t.Wire) && float64(t.Wire[rank]) < float64(sent)*(1-WireTolerance) {
			return fmt.Errorf("rank %d sent %d bytes, of which its link carried %d: the rest went past it", rank, sent, t.Wire[rank])
		}
	}
	return nil
}

// A ScalingRow is the trials of one system and number of workers.
type ScalingRow struct {
	System  string  `json:"system"`
	Workers int     `json:"workers"`
	Trials  int     `json:"trials"`
	Seconds float64 `json:"seconds"`     // mean over the trials
	Std     float64 `json:"std_seconds"` // sample standard deviation; 0 of one trial
	StepMs  float64 `json:"step_ms"`
	StepStd float64 `json:"std_step_ms"`
	// Growth is T(N)/T(1), ideally 1, and Scalability N*T(1)/T(N), ideally N.
	Growth      float64 `json:"growth"`
	Scalability float64 `json:"scalability"`

	Split
	StepSent  int64   `json:"step_sent_bytes"`
	Sent      int64   `json:"sent_bytes"`           // per trial, by the rank that sends the most
	Wire      int64   `json:"wire_bytes,omitempty"` // of the same rank
	WireOff   float64 `json:"wire_off"`             // largest difference of Wire and Sent over ranks and trials, as a share of Sent
	Busy      float64 `json:"busy"`
	CoreBound bool    `json:"core_bound"`
}

// Speedup is T(1)/T(N), ideally 1: every worker makes all the steps.
func (r ScalingRow) Speedup() float64 { return 1 / r.Growth }

// ScalingRows are the rows of trials, by system and then by workers. Growth and
// Scalability are NaN where a system has no trial with one worker.
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
		first, ok := one[rows[i].System]
		if !ok {
			first = math.NaN()
		}
		rows[i].Growth, rows[i].Scalability = scale(rows[i].Workers, first, rows[i].StepMs)
	}
	return rows
}

// scale is what times of one and of n workers come to.
func scale(n int, one, many float64) (growth, scalability float64) {
	return many / one, float64(n) * one / many
}

// summarize fills in what the trials, one at least, have in common.
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
	r.Busy = of(func(t Trial) float64 { return t.Busy })
	r.CoreBound = r.Busy > CoreBound
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

// most is what the rank that sends the most sent, by our count and by its
// link's.
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

// meanStd is the mean and the sample standard deviation, which is 0 of one.
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

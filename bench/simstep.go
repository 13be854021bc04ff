package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringtrain/ringtrain/collective/schedule"
	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/paramserver"
)

// What ranks exchange about a step besides gradients, in elements of 4 bytes: words, and with
// parameter servers, a command of wordLen and the status.
const (
	wordLen   = 16
	statusLen = 18
)

// simulatedMethods are the algorithms of an AllReduce that a simulation knows: those of
// nodes with one rank each.
var simulatedMethods = [...]schedule.Method{schedule.Ring, schedule.Direct, schedule.Halving, schedule.Tree, schedule.OneShot, schedule.Collected}

// A Workload is what the workers of a simulation do in each step.
type Workload struct {
	Params     *nn.Params
	Compute    time.Duration // a third is the forward pass; see Emulate
	InnerSteps int           // with local-sgd and diloco

	overheads map[string]float64 // of a step, besides compute and exchange, by system; in nanoseconds
}

// final returns when the gradients from an element on are final, in nanoseconds.
func (w Workload) final(at int) float64 {
	n := w.Params.Grads.Len()
	return float64(w.Compute) * (1 + 2*float64(n-at)/float64(max(n, 1))) / 3
}

// A prediction of a step. Times are in nanoseconds.
type prediction struct {
	step  float64
	bound float64 // that no system with these messages can beat, whatever the algorithm
	how   string  // the algorithm
}

// predict returns what a step of a system with n workers takes.
func (f Fabric) predict(w Workload, name string, n int) prediction {
	s := systemOf(name)
	var p prediction
	switch {
	case n < 2 && s.strategy != servedSystem:
		p = prediction{float64(w.Compute), float64(w.Compute), "alone"}
	case s.strategy == servedSystem:
		p = f.predictServers(w, s, n)
	case s.strategy == "allreduce":
		p = f.predictAllReduce(w, s.option, n)
	default:
		p = f.predictRounds(w, n)
	}
	p.step, p.bound = p.step+w.overheads[name], p.bound+w.overheads[name]
	return p
}

// predictAllReduce is predict for allreduce. A bucket leaves when its gradients are final
// and the one before has arrived.
func (f Fabric) predictAllReduce(w Workload, method string, n int) prediction {
	s := simulation{f, n}
	situation := s.situation()
	if method != "" {
		situation.Any = true
		situation.Force, _ = schedule.ParseMethod(method) // checkSimulated has accepted it
	}
	plan := func(n int) schedule.Plan { return situation.Plan(n, 4, true) }
	bucket := trainer.DefaultBucket
	if method == "" {
		bucket = trainer.SmallestBucket(w.Params, func(n int) time.Duration { return situation.Predict(plan(n), n, 4) })
	}
	var how []string
	done, from, buckets := 0., w.Params.Grads.Len(), trainer.Buckets(w.Params, bucket)
	for _, elements := range buckets {
		from -= elements
		p := plan(elements)
		done = max(done, w.final(from)) + s.allReduce(p, elements)
		how = append(how, p.Method.String())
	}
	text := strings.Join(slices.Compact(how), ", ")
	if len(buckets) > 1 {
		text = fmt.Sprintf("%d buckets: %s", len(buckets), text)
	}
	return prediction{done + s.gather(wordLen), f.boundAllReduce(w, n), text}
}

// boundAllReduce is the time after which the gradients that are final last can have
// arrived: every node sends and receives 2(n-1)/n times their bytes (Patarasuk and Yuan,
// 2009).
func (f Fabric) boundAllReduce(w Workload, n int) float64 {
	least := float64(w.Compute)
	for _, q := range w.Params.List {
		left := float64(4*(q.Offset+q.Values.Len())) * 2 * float64(n-1) / float64(n)
		least = max(least, w.final(q.Offset)+left*8e9/f.Rate)
	}
	return least
}

// predictRounds is predict for workers that exchange all values once in a round.
func (f Fabric) predictRounds(w Workload, n int) prediction {
	s, elements := simulation{f, n}, w.Params.Grads.Len()
	p := s.situation().Plan(elements, 4, true)
	outer := (s.gather(wordLen) + s.allReduce(p, elements)) / float64(w.InnerSteps)
	least := float64(4*elements) * 2 * float64(n-1) / float64(n) * 8e9 / f.Rate / float64(w.InnerSteps)
	return prediction{float64(w.Compute) + outer, float64(w.Compute) + least, fmt.Sprintf("%v, once in %d steps", p.Method, w.InnerSteps)}
}

// predictServers is predict for parameter servers: all workers push, then all pull. A bucket
// leaves when its gradients are final and the one before has arrived.
func (f Fabric) predictServers(w Workload, s system, n int) prediction {
	first, servers, how := n, 1, "1 server"
	switch {
	case s.option == job.Colocated:
		first, servers, how = 0, n, "every worker a server"
	case s.option != "":
		servers, _ = strconv.Atoi(s.option) // checkSimulated has accepted it
		how = plural(servers, "server")
	}
	all := simulation{f, first + servers}
	lens := paramserver.Buckets(w.Params, servers, all.bucket(w.Params))
	if len(lens) > 1 {
		how += fmt.Sprintf(", %d buckets", len(lens))
	}
	held := make([]int, servers)
	move := func(elements []int, pull bool) float64 {
		return all.run(func(rank int) []schedule.Move {
			return allToAllMoves(rank, all.nodes, func(from, to int) int {
				if pull {
					from, to = to, from
				}
				if from >= n || to < first || to >= first+servers {
					return 0
				}
				return elements[to-first]
			})
		})
	}
	from, done := w.Params.Grads.Len(), 0.
	for b, elements := range paramserver.Shares(w.Params, servers, lens) {
		if from -= lens[b]; b == 0 {
			done = w.final(from) + all.gather(wordLen)
		}
		done = max(done, w.final(from)) + move(elements, false)
		for i, k := range elements {
			held[i] += k
		}
	}
	largest, clients, given := slices.Max(held), n, w.Params.Grads.Len()
	if first == 0 { // a worker keeps its own share
		clients, given = n-1, given-largest
	}
	wire := f.wire(4 * max(clients*largest, given))
	least := max(float64(w.Compute), w.final(w.Params.Grads.Len()-lens[0])+wire) + wire
	return prediction{done + all.gather(statusLen) + move(held, true), least, how}
}

// bucket is what trainer.ChooseBucket returns for these nodes.
func (s simulation) bucket(p *nn.Params) int {
	if s.nodes < 2 {
		return trainer.DefaultBucket
	}
	situation := s.situation()
	return trainer.SmallestBucket(p, func(n int) time.Duration { return situation.Predict(situation.Plan(n, 4, true), n, 4) })
}

// methodTimes returns how long each of simulatedMethods takes to sum the gradients of n nodes
// in one piece, in nanoseconds.
func (f Fabric) methodTimes(p *nn.Params, n int) []float64 {
	s, elements := simulation{f, n}, p.Grads.Len()
	var times []float64
	for _, m := range simulatedMethods {
		plan := schedule.PlanReduce(n, elements, 4, false, true)
		if plan.Method = m; m == schedule.Ring {
			plan.Ahead = schedule.RingAhead
		}
		times = append(times, s.allReduce(plan, elements))
	}
	return times
}

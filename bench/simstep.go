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
// parameter servers, a command of wordLen and the status, which has one int64 more.
const (
	wordLen   = 2 * trainer.WordLen
	statusLen = wordLen + 2
)

// simulatedMethods are the algorithms of an AllReduce that a simulation knows: those of
// nodes with one rank each.
var simulatedMethods = [...]schedule.Method{schedule.Ring, schedule.Direct, schedule.Halving, schedule.Tree, schedule.OneShot, schedule.Collected}

// A Workload is what the workers of a simulation do in each step.
type Workload struct {
	Params     *nn.Params
	Compute    time.Duration // a third is the forward pass; see Emulate
	InnerSteps int           // with local-sgd and diloco

	compression trainer.Compression
	overheads   map[string]float64 // of a step, besides compute and exchange, by system; in nanoseconds
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
		p = prediction{step: float64(w.Compute), how: "alone"}
	case s.strategy == servedSystem:
		p = f.predictServers(w, s, n)
	case s.strategy == "allreduce":
		p = f.predictAllReduce(w, s.option, n)
	default:
		p = f.predictRounds(w, n)
	}
	p.step, p.bound = p.step+w.overheads[name], f.bound(w, s, n)+w.overheads[name]
	return p
}

// predictAllReduce is predict for allreduce. A bucket leaves when its gradients are final
// and the one before has arrived.
func (f Fabric) predictAllReduce(w Workload, method string, n int) prediction {
	s := simulation{f, n}
	situation := s.situation()
	if method != "" {
		situation.Any = true
		situation.Force, _ = schedule.ParseMethod(method) // SimulationRun.Check has accepted it
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
	return prediction{step: done + s.gather(wordLen), how: text}
}

// predictRounds is predict for workers that exchange all values once in a round.
func (f Fabric) predictRounds(w Workload, n int) prediction {
	s, elements := simulation{f, n}, w.Params.Grads.Len()
	p := s.situation().Plan(elements, 4, true)
	outer := (s.gather(wordLen) + s.allReduce(p, elements)) / float64(w.InnerSteps)
	return prediction{step: float64(w.Compute) + outer, how: fmt.Sprintf("%v, once in %d steps", p.Method, w.InnerSteps)}
}

// A serving says which nodes are servers, and what each of them holds.
type serving struct {
	all            simulation // of workers and servers
	first, servers int        // the node of the first server, and their number
	lens           []int      // elements of each bucket
	shares         [][]int    // of each bucket, by server
	how            string
}

// serving returns how servers serve n workers.
func (f Fabric) serving(w Workload, s system, n int) serving {
	v := serving{first: n, servers: 1, how: "1 server"}
	switch {
	case s.option == job.Colocated:
		v.first, v.servers, v.how = 0, n, "every worker a server"
	case s.option != "":
		v.servers, _ = strconv.Atoi(s.option) // checkSystems has accepted it
		v.how = plural(v.servers, "server")
	}
	v.all = simulation{f, v.first + v.servers}
	v.lens = paramserver.Buckets(w.Params, v.servers, v.all.bucket(w.Params))
	v.shares = paramserver.Shares(w.Params, v.servers, v.lens)
	if len(v.lens) > 1 {
		v.how += fmt.Sprintf(", %d buckets", len(v.lens))
	}
	return v
}

// held returns the elements that each server holds.
func (v *serving) held() []int {
	held := make([]int, v.servers)
	for _, elements := range v.shares {
		for i, k := range elements {
			held[i] += k
		}
	}
	return held
}

// predictServers is predict for parameter servers: all workers push, then all pull. A bucket
// leaves when its gradients are final and the one before has arrived.
func (f Fabric) predictServers(w Workload, s system, n int) prediction {
	v := f.serving(w, s, n)
	move := func(elements []int, pull bool) float64 {
		return v.all.run(func(rank int) []schedule.Move {
			return allToAllMoves(rank, v.all.nodes, func(from, to int) int {
				if pull {
					from, to = to, from
				}
				if from >= n || to < v.first || to >= v.first+v.servers {
					return 0
				}
				return elements[to-v.first]
			})
		})
	}
	from, done := w.Params.Grads.Len(), 0.
	for b, elements := range v.shares {
		if from -= v.lens[b]; b == 0 {
			done = w.final(from) + v.all.gather(wordLen)
		}
		done = max(done, w.final(from)) + move(elements, false)
	}
	return prediction{step: done + v.all.gather(statusLen) + move(v.held(), true), how: v.how}
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

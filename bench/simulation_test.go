package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/schedule"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/catalog"
	"github.com/ringtrain/ringtrain/trainer/config"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/paramserver"
)

// gigabit is a Fabric in which only bytes cost time.
var gigabit = Fabric{Rate: 1e9}

// perceptron is the lengths of the parameters of the default config.
var perceptron = []int{784 * 128, 128, 128 * 128, 128, 128 * 10, 10}

// workloadOf returns a Workload with parameters of these lengths.
func workloadOf(t *testing.T, compute time.Duration, lens ...int) Workload {
	t.Helper()
	s := Scaling{Compute: "emulate:" + compute.String(), Lens: lens, InnerSteps: 50}
	b := cpu.New(cpu.Options{})
	t.Cleanup(func() { _ = b.Close() })
	w, err := s.workload(b)
	require.NoError(t, err)
	require.Equal(t, compute, w.Compute)
	return w
}

// planBy returns the plan of a method.
func planBy(m schedule.Method, size, count int) schedule.Plan {
	p := schedule.PlanReduce(size, count, 4, false, true)
	if p.Method = m; m == schedule.Ring {
		p.Ahead = schedule.RingAhead
	}
	return p
}

// Every message that is sent is received, and every node makes all its moves.
func TestSimulatedMovesMatch(t *testing.T) {
	for size := 2; size <= 17; size++ {
		for _, count := range []int{1, 5000, 300_000} {
			all := map[string]func(rank int) []schedule.Move{
				"ring":      func(r int) []schedule.Move { return ringMoves(r, size, count, planBy(schedule.Ring, size, count)) },
				"direct":    func(r int) []schedule.Move { return directMoves(r, size, count, planBy(schedule.Direct, size, count)) },
				"one-shot":  func(r int) []schedule.Move { return oneShotMoves(r, size, count) },
				"collected": func(r int) []schedule.Move { return collectedMoves(r, size, count, count) },
				"gather":    func(r int) []schedule.Move { return ringGatherMoves(r, size, count) },
				"push": func(r int) []schedule.Move {
					return allToAllMoves(r, size, func(from, to int) int { return count * from * (to % 3) })
				},
			}
			for name, moves := range all {
				c := newCarrier(gigabit, nil, 1)
				for r := range size {
					c.nodes = append(c.nodes, simulated{moves: moves(r), waits: -1})
					c.ready = append(c.ready, r)
				}
				for len(c.ready) > 0 {
					c.advance()
				}
				for r, n := range c.nodes {
					require.Empty(t, n.moves, "%s of %d elements, rank %d of %d", name, count, r, size)
					require.Empty(t, n.inbox, "%s of %d elements, rank %d of %d", name, count, r, size)
				}
			}
		}
	}
}

// Where only bytes cost time, ring and halving take what the bytes of each node take. Nothing
// is faster.
func TestSimulatedBandwidth(t *testing.T) {
	const count = 1 << 22
	for _, n := range []int{2, 8, 16} {
		least := 2 * float64(n-1) / float64(n) * 4 * count * 8
		s := simulation{gigabit, n}
		for _, m := range simulatedMethods {
			took := s.allReduce(planBy(m, n, count), count)
			require.GreaterOrEqual(t, took, least, "%v among %d", m, n)
			if slices.Contains([]schedule.Method{schedule.Ring, schedule.Direct, schedule.Halving}, m) {
				require.Less(t, took, 1.1*least, "%v among %d", m, n)
			}
		}
	}
}

// Where only messages cost time, a ring takes 2(n-1) of them and a tree a logarithmic number.
func TestSimulatedLatency(t *testing.T) {
	far := Fabric{Rate: 1e15, Latency: time.Millisecond}
	for _, n := range []int{2, 16, 256} {
		s := simulation{far, n}
		require.InEpsilon(t, 2e6*float64(n-1), s.allReduce(planBy(schedule.Ring, n, 1), 1), .01)
		require.InEpsilon(t, 2e6*float64(schedule.Rounds(n)), s.allReduce(planBy(schedule.Halving, n, 1), 1), .01)
	}
}

// Nodes that share cores handle messages more slowly.
func TestSimulatedCores(t *testing.T) {
	f := Fabric{Rate: 1e15, Message: time.Microsecond}
	own := simulation{f, 16}.gather(wordLen)
	f.Cores = 2
	require.InEpsilon(t, 8*own, simulation{f, 16}.gather(wordLen), .2)
	f.Cores = 32
	require.Equal(t, own, simulation{f, 16}.gather(wordLen), "one core is enough for a node")
}

// One node that stands for all takes about as long as all of them.
func TestSimulatedAlike(t *testing.T) {
	f := Fabric{Rate: 1e9, Latency: 25 * time.Microsecond, Message: 5 * time.Microsecond}
	for _, count := range []int{118_282, 4 << 20} {
		const n = mostSimulated
		plan := planBy(schedule.Ring, n, count)
		apart, one := simulation{f, n}.allReduce(plan, count), simulation{f, n + 1}.allReduce(plan, count)
		require.InEpsilon(t, apart*(n+1)/n, one, .1, "%d elements", count)
	}
}

// A server's link carries the gradients of all workers, and then their values. More servers
// share that. In an AllToAllV, not all of them receive at any time. The backward pass hides
// what comes during it.
func TestSimulatedServers(t *testing.T) {
	w := workloadOf(t, 100*time.Millisecond, slices.Repeat([]int{1 << 16}, 16)...)
	bytes := 4 * 16 << 16
	least := func(nodes, servers, bytes int) float64 {
		lens := paramserver.Buckets(w.Params, servers, simulation{gigabit, nodes}.bucket(w.Params))
		wire, last := gigabit.wire(bytes), float64(lens[len(lens)-1])/float64(w.Params.Grads.Len())
		return max(100e6+last*wire, w.final(w.Params.Grads.Len()-lens[0])+wire) + wire
	}
	for _, n := range []int{1, 4, 16} {
		one := gigabit.predict(w, "ps-sync", n)
		require.InEpsilon(t, least(n+1, 1, n*bytes), one.step, .05)
		four := gigabit.predict(w, "ps-sync:4", n)
		require.Less(t, four.step, 2*four.bound)
		all := gigabit.predict(w, "ps-sync:colocated", n)
		require.InEpsilon(t, least(n, n, (n-1)*bytes/n), all.step, .05)
		for _, p := range []prediction{one, four, all} {
			require.LessOrEqual(t, p.bound, p.step)
			require.Less(t, p.step, 2*p.bound)
		}
	}
}

// Rounds share the exchange, and buckets hide all of it but the last.
func TestSimulatedSystems(t *testing.T) {
	w := workloadOf(t, 100*time.Millisecond, perceptron...)
	whole := simulation{gigabit, 8}.allReduce(planBy(schedule.Ring, 8, w.Params.Grads.Len()), w.Params.Grads.Len())
	word := simulation{gigabit, 8}.gather(wordLen)
	require.InEpsilon(t, 100e6+(whole+word)/50, gigabit.predict(w, "diloco", 8).step, 1e-6)
	require.Equal(t, 100e6, gigabit.predict(w, "diloco", 1).step)

	halves := workloadOf(t, 100*time.Millisecond, 1<<20, 1<<20)
	p := gigabit.predict(halves, "allreduce", 8)
	require.Equal(t, "2 buckets: ring", p.how)
	half := simulation{gigabit, 8}.allReduce(planBy(schedule.Ring, 8, 1<<20), 1<<20)
	require.InEpsilon(t, halves.final(1<<20)+2*half, p.step, .01, "the second bucket waits for the first")
	require.LessOrEqual(t, p.bound, p.step)
	require.Equal(t, "2 buckets: halving-doubling", gigabit.predict(halves, "allreduce:halving-doubling", 8).how)
}

// A fit finds the processor times that made the measurements.
func TestSimulationFits(t *testing.T) {
	w := workloadOf(t, 50*time.Millisecond, perceptron...)
	want := Fabric{Rate: 1e9, Message: 80 * time.Microsecond, PerByte: .5, Cores: 2}
	var rows []ScalingRow
	for _, n := range []int{1, 2, 4, 16} {
		r := ScalingRow{System: "allreduce", Workers: n, StepMs: want.predict(w, "allreduce", n).step / 1e6}
		if n > mostFitted {
			r.StepMs *= 3 // it is no part of the fit
		}
		rows = append(rows, r)
	}
	got := Fabric{Rate: 1e9, Cores: 2}.fit(w, rows)
	for _, n := range []int{2, 4, 8, 16} {
		require.InEpsilon(t, want.predict(w, "allreduce", n).step, got.predict(w, "allreduce", n).step, .05, "%d workers", n)
	}
}

// Where the processors' load is known, a fit tells latency from processor time. Otherwise the
// prediction for many nodes on few cores would take the one for the other.
func TestSimulationFitsLatency(t *testing.T) {
	w := workloadOf(t, 50*time.Millisecond, perceptron...)
	want := Fabric{Rate: 1e9, Latency: time.Millisecond, Message: 10 * time.Microsecond, PerByte: .5, Cores: 2}
	rows := func(other float64) (all []ScalingRow) {
		for _, n := range []int{1, 2, 4, 16} {
			g := want
			g.spent = new(float64)
			step := g.predict(w, "allreduce", n).step
			busy := (*g.spent + float64(n)*1e6) / (2 * step) // each worker's own millisecond
			all = append(all, ScalingRow{System: "allreduce", Workers: n, StepMs: step / 1e6, Busy: busy + other})
		}
		return all
	}
	start := Fabric{Rate: 1e9, Cores: 2}
	got := start.fit(w, rows(0))
	require.InEpsilon(t, float64(want.Latency), float64(got.Latency), .2)
	for _, n := range []int{2, 4, 8, 16} {
		require.InEpsilon(t, want.predict(w, "allreduce", n).step, got.predict(w, "allreduce", n).step, .05, "%d workers", n)
	}
	require.Zero(t, start.fit(w, rows(.5)).Latency, "other programs used the processors")
	unknown := rows(0)
	unknown[2].Busy = -1
	require.Zero(t, start.fit(w, unknown).Latency)
}

// measured is a scaling.json with the steps of docs/benchmarks.md, of 2026-11-20.
func measured(t *testing.T, change func(s *Scaling)) string {
	s := Scaling{Compute: "emulate:116.7ms", Params: 118282, Lens: perceptron, Link: "1gbit", Processors: 2, InnerSteps: 50, Steps: 30}
	for n, ms := range map[int]float64{1: 118.03, 2: 122.21, 4: 125.38, 8: 131.37, 16: 150.17} {
		s.Trials = append(s.Trials, Trial{System: "allreduce", Workers: n, Steps: 30, Seconds: .03 * ms})
	}
	change(&s)
	path := filepath.Join(t.TempDir(), "scaling.json")
	file, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, s.WriteJSON(file))
	require.NoError(t, file.Close())
	return path
}

// Fitted to measurements with 2 and 4 workers, a simulation predicts those with 8 and 16.
func TestSimulationPredictsMeasurements(t *testing.T) {
	run := SimulationRun{Catalog: catalog.New(), Data: "digits", Workers: []int{1, 2, 4, 8, 16, 32}, System: "allreduce", From: measured(t, func(*Scaling) {}), Cores: -1, Latency: -1}
	s, err := run.Run()
	require.NoError(t, err)
	require.True(t, s.Fitted)
	require.Len(t, s.Rows, 6)
	for _, r := range s.Rows[:5] {
		t.Logf("%d workers: %.2f ms, measured %.2f", r.Workers, r.StepMs, r.MeasuredMs)
		require.InDelta(t, 0, r.Off(), .15, "%d workers", r.Workers)
		require.LessOrEqual(t, r.BoundMs, r.StepMs)
	}
	require.InEpsilon(t, 118.03, s.Rows[0].StepMs, 1e-9, "the overhead of a step is measured")
	require.Zero(t, s.Rows[5].MeasuredMs)

	run.Link = "10gbit"
	faster, err := run.Run()
	require.NoError(t, err)
	require.Less(t, faster.Rows[4].StepMs, s.Rows[4].StepMs)
	require.Equal(t, s.Fabric.Message, faster.Fabric.Message, "the fit is with the measured link")
	require.Zero(t, faster.Rows[4].MeasuredMs, "the measurement had another link")

	run.From = measured(t, func(s *Scaling) {
		for i := range s.Trials {
			s.Trials[i].Busy = .02 * float64(s.Trials[i].Workers)
		}
	})
	faster, err = run.Run()
	require.NoError(t, err)
	run.Link = ""
	s, err = run.Run()
	require.NoError(t, err)
	require.Positive(t, s.Fabric.Latency)
	require.Equal(t, s.Fabric.Latency/10, faster.Fabric.Latency, "packets pass ten times sooner")
	run.Latency = time.Second
	s, err = run.Run()
	require.NoError(t, err)
	require.Equal(t, time.Second, s.Fabric.Latency)
	run.Latency = 0
	s, err = run.Run()
	require.NoError(t, err)
	require.Zero(t, s.Fabric.Latency, "0 is a latency, too")
	require.Zero(t, s.Rows[4].MeasuredMs, "the measurement had another latency")
}

// A file that a fit cannot use is an error that says what to measure.
func TestSimulationFromOther(t *testing.T) {
	for want, change := range map[string]func(s *Scaling){
		"its compute is real: measure with --compute emulate:TIME": func(s *Scaling) { s.Compute = "real" },
		"measure with --hosts netns --link RATE":                   func(s *Scaling) { s.Link = "" },
		"it has no measurements with 2 to 4 workers":               func(s *Scaling) { s.Trials = s.Trials[:0] },
		"its parameters": func(s *Scaling) { s.Lens = []int{-1} },
	} {
		run := SimulationRun{Catalog: catalog.New(), Workers: []int{2}, System: "allreduce", From: measured(t, change), Cores: -1, Latency: -1}
		_, err := run.Run()
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "--from "+run.From)
	}
}

// A file from which numbers were lost is an error, not a panic.
func TestSimulationFromDamagedFile(t *testing.T) {
	path := measured(t, func(s *Scaling) { s.Trials[0].Sent, s.Trials[0].Wire = []int64{98765}, []int64{98766} })
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(text), "98765", "", 1)), 0o600))
	run := SimulationRun{Catalog: catalog.New(), Workers: []int{2}, System: "allreduce", From: path, Cores: -1, Latency: -1}
	_, err = run.Run()
	var usage *crew.UsageError
	require.ErrorAs(t, err, &usage)
	require.ErrorContains(t, err, "--from "+path+": trial 0 of allreduce with ")
	require.ErrorContains(t, err, "has 1 wire_bytes and only 0 sent_bytes")
}

func TestSimulationCheck(t *testing.T) {
	for want, change := range map[string]func(f *SimulationRun){
		"":                                     func(*SimulationRun) {},
		"--workers must be from 1 to 4096":     func(f *SimulationRun) { f.Workers = []int{2, 5000} },
		"--workers is empty":                   func(f *SimulationRun) { f.Workers = nil },
		"--compute must be the time of a step": func(f *SimulationRun) { f.Compute = 0 },
		"--compute and --inner-steps must not": func(f *SimulationRun) { f.InnerSteps = -1 },
		"--link must be the rate of a link":    func(f *SimulationRun) { f.Link = "" },
		"--link: rate must be":                 func(f *SimulationRun) { f.Link = "fast" },
		`--system must be names from`:          func(f *SimulationRun) { f.System = "allreduce:ring,gossip" },
		"--system ps-peers:2: workers that do not step together cannot be simulated": func(f *SimulationRun) { f.System = "allreduce,ps-peers:2" },
		"--model.hidden_width has no effect with --from": func(f *SimulationRun) {
			f.From, f.Overrides = "scaling.json", []config.Override{{Path: "model.hidden_width", Raw: "512"}}
		},
		"--holdout has no effect with --from":                                  func(f *SimulationRun) { f.From, f.Options.Holdout = "scaling.json", .5 },
		`--system allreduce:shared: the algorithm must be one of [ring direct`: func(f *SimulationRun) { f.System = "allreduce:shared" },
	} {
		f := SimulationRun{Workers: []int{2}, System: "allreduce,allreduce:ring,ps-sync:2", Compute: time.Second, Link: "1gbit"}
		change(&f)
		if want == "" {
			require.NoError(t, f.Check())
			continue
		}
		require.ErrorContains(t, f.Check(), want)
	}
}

// Tables have a row for each prediction, and the fastest algorithm of each number of workers.
func TestSimulationText(t *testing.T) {
	s := Simulation{Command: "ringtrain simulate", Compute: 100 * time.Millisecond, Fabric: gigabit, Params: 118282}
	s.simulate(workloadOf(t, s.Compute, perceptron...), []string{"allreduce", "diloco"}, []int{1, 2, 4096}, nil)
	var out bytes.Buffer
	require.NoError(t, s.Text(&out))
	require.Contains(t, out.String(), "links:    1 Gbit/s each way")
	require.Regexp(t, `(?m)^system +workers +ms/step +bound +growth +scalability +measured +off +how$`, out.String())
	require.Regexp(t, `(?m)^allreduce +1 +100\.00 +100\.00 +1\.00 +1\.00 +alone$`, out.String())
	require.Regexp(t, `(?m)^diloco +4096 .* once in 50 steps$`, out.String())
	require.Regexp(t, `(?m)^workers +ring +direct +halving-doubling +double-tree +one-shot +collected +fastest$`, out.String())
	require.NotContains(t, out.String(), "fitted")

	out.Reset()
	require.NoError(t, s.WriteJSON(&out))
	var back Simulation
	require.NoError(t, json.Unmarshal(out.Bytes(), &back))
	require.Equal(t, s, back)
	for _, r := range s.Methods {
		for name, ms := range r.Ms {
			require.GreaterOrEqual(t, ms, r.Ms[r.Fastest], fmt.Sprint(name, " among ", r.Workers))
		}
	}
}

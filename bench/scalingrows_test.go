package bench_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/bench"
)

// handRun has two trials of 1 and of 4 workers, small enough to compute by hand.
func handRun() []bench.Trial {
	return []bench.Trial{
		{System: "allreduce", Workers: 4, Trial: 1, Steps: 10, Seconds: 3, Split: bench.Split{Compute: 100, Exchange: 150, Optimizer: 10, Evaluation: 20, Idle: 20},
			StepSent: 100, Sent: []int64{1000, 3000, 2000, 2999}, Wire: []int64{1000, 3300, 1000, 2999}, Busy: .8},
		{System: "allreduce", Workers: 1, Trial: 1, Steps: 10, Seconds: 1, Split: bench.Split{Compute: 90, Optimizer: 10}, Sent: []int64{0}, Wire: []int64{7}, Busy: .2},
		{System: "allreduce", Workers: 4, Trial: 2, Steps: 10, Seconds: 5, Split: bench.Split{Compute: 300, Exchange: 50, Optimizer: 30, Evaluation: 40, Idle: 80},
			StepSent: 103, Sent: []int64{4000, 3000, 2000, 1000}, Wire: []int64{4100, 3000, 2000, 1000}, Busy: .91},
		{System: "allreduce", Workers: 1, Trial: 2, Steps: 10, Seconds: 1, Split: bench.Split{Compute: 92, Optimizer: 8}, Sent: []int64{0}, Wire: []int64{9}, Busy: .4},
	}
}

// Every column of a run whose rows are computed by hand.
func TestScalingRowsByHand(t *testing.T) {
	rows := bench.ScalingRows(handRun())
	require.Len(t, rows, 2, "sorted by workers, whatever the order of the trials")
	one, four := rows[0], rows[1]
	require.Equal(t, bench.ScalingRow{System: "allreduce", Workers: 1, Trials: 2, Seconds: 1, StepMs: 100, Growth: 1, Scalability: 1,
		Split: bench.Split{Compute: 91, Optimizer: 9}, Wire: 7 + 1, Busy: one.Busy}, one)
	require.InDelta(t, .3, one.Busy, 1e-12)
	for name, c := range map[string][2]float64{
		"seconds, mean of 3 and 5":             {4, four.Seconds},
		"standard deviation of 3 and 5":        {math.Sqrt2, four.Std},
		"ms of a step":                         {400, four.StepMs},
		"standard deviation of 300 and 500 ms": {100 * math.Sqrt2, four.StepStd},
		"growth 400/100":                       {4, four.Growth},
		"speedup 100/400":                      {.25, four.Speedup()},
		"scalability 4*100/400":                {1, four.Scalability},
		"compute":                              {200, four.Compute},
		"exchange":                             {100, four.Exchange},
		"optimizer":                            {20, four.Optimizer},
		"evaluation":                           {30, four.Evaluation},
		"idle":                                 {50, four.Idle},
		"busy":                                 {.855, four.Busy},
		"largest difference on the wire: 1000 instead of 2000": {.5, four.WireOff},
	} {
		require.InDelta(t, c[0], c[1], 1e-9, name)
	}
	require.EqualValues(t, 102, four.StepSent, "101.5, rounded")
	require.EqualValues(t, 3500, four.Sent, "mean of the busiest ranks, 1 and 0")
	require.EqualValues(t, 3700, four.Wire, "of the same ranks")
	require.True(t, four.CoreBound)
	require.False(t, one.CoreBound)
	require.Empty(t, bench.ScalingRows(nil))
}

// A machine is core-bound above the limit, not at it.
func TestCoreBound(t *testing.T) {
	for busy, want := range map[float64]bool{-1: false, 0: false, bench.CoreBound: false, math.Nextafter(bench.CoreBound, 1): true, 1: true} {
		require.Equal(t, want, bench.ScalingRows([]bench.Trial{{System: "allreduce", Workers: 1, Steps: 1, Seconds: 1, Busy: busy}})[0].CoreBound, "%v", busy)
		require.Equal(t, want, bench.ScalingRows([]bench.Trial{{System: "allreduce", Workers: 1, Steps: 1, Seconds: 1, Busy: .1, Peak: busy}})[0].CoreBound, "%v", busy)
	}
}

// Growth times scalability is the number of workers, and growth times speedup is 1,
// whatever the times.
func TestScalingRatios(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var trials []bench.Trial
		for workers := range rapid.IntRange(1, 6).Draw(t, "workers") {
			trials = append(trials, bench.Trial{System: "allreduce", Workers: workers + 1, Steps: rapid.IntRange(1, 9).Draw(t, "steps"), Seconds: rapid.Float64Range(1e-3, 1e3).Draw(t, "seconds")})
		}
		for i, r := range bench.ScalingRows(trials) {
			require.Equal(t, i+1, r.Workers)
			require.InEpsilon(t, float64(r.Workers), r.Growth*r.Scalability, 1e-9)
			require.InEpsilon(t, 1, r.Growth*r.Speedup(), 1e-9)
			require.InEpsilon(t, r.StepMs/bench.ScalingRows(trials)[0].StepMs, r.Growth, 1e-9, "by step, although the trials have different steps")
		}
	})
}

// Times of 0, shorter than the clock's resolution, have no ratios that JSON knows. They
// are no reason to lose a run.
func TestScalingWithoutRatios(t *testing.T) {
	run := func(seconds ...float64) bench.Scaling {
		s := bench.Scaling{Compute: "real"}
		for i, x := range seconds {
			s.Trials = append(s.Trials, bench.Trial{System: "allreduce", Workers: i + 1, Steps: 1, Seconds: x, Links: []bench.Link{}})
		}
		return s
	}
	for name, s := range map[string]bench.Scaling{"nothing": run(), "no time at all": run(0, 0), "none with one worker": run(0, 1), "none with two": run(1, 0)} {
		var out bytes.Buffer
		require.NoError(t, s.WriteJSON(&out), name)
		var back struct{ Rows []bench.ScalingRow }
		require.NoError(t, json.Unmarshal(out.Bytes(), &back), name)
		require.Len(t, back.Rows, len(s.Trials), name)
		out.Reset()
		require.NoError(t, s.Text(&out), name)
		for _, odd := range []string{"NaN", "Inf"} {
			require.NotContains(t, out.String(), odd, name)
		}
	}
}

// The lines that follow the tables, for runs without links and with shared memory.
func TestScalingNotes(t *testing.T) {
	text := func(trials ...bench.Trial) string {
		var out bytes.Buffer
		require.NoError(t, bench.Scaling{Compute: "real", Trials: trials, Steps: 1, Batch: 1, Params: 1}.Text(&out))
		return out.String()
	}
	shm := func(int, int) string { return "shm" }
	alone := bench.Trial{System: "allreduce", Workers: 1, Steps: 1, Seconds: 1, Busy: -1, Links: bench.Links(1, shm)}
	three := bench.Trial{System: "allreduce", Workers: 3, Steps: 1, Seconds: 1, Busy: -1, Links: bench.Links(3, shm)}
	require.Contains(t, text(alone), "training: 1 step of 1 row per worker, 1 parameter\n", "singular")
	require.NotContains(t, text(alone), "share memory")
	require.NotContains(t, text(alone), "pairs of ranks")
	shared := text(alone, three, three)
	require.Contains(t, shared, "Ranks that share memory (shm) send no gradients: the bytes are what the same calls\nsend over tcp.\n")
	require.Equal(t, 1, strings.Count(shared, "- allreduce, 3 workers: 3 pairs of ranks, each over shm.\n"), "equal trials are named once")
}

// Every pair of ranks is in exactly one link, under its transport.
func TestLinksHaveEveryPair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ranks := rapid.IntRange(0, 9).Draw(t, "ranks")
		kinds := rapid.SliceOfN(rapid.SampledFrom([]string{"tcp", "shm", "inproc"}), 81, 81).Draw(t, "transports")
		transport := func(a, b int) string { return kinds[9*a+b] }
		pairs := map[[2]int]string{}
		for _, l := range bench.Links(ranks, transport) {
			for _, span := range strings.Split(l.Peers, ",") {
				first, last, several := strings.Cut(span, "-")
				if !several {
					last = first
				}
				from, err := strconv.Atoi(first)
				require.NoError(t, err)
				to, err := strconv.Atoi(last)
				require.NoError(t, err)
				require.True(t, from < to || !several && from == to, span)
				for b := from; b <= to; b++ {
					pair := [2]int{l.Rank, b}
					require.Empty(t, pairs[pair], "%v is there twice", pair)
					pairs[pair] = l.Transport
				}
			}
		}
		require.Len(t, pairs, ranks*max(ranks-1, 0)/2)
		for pair, kind := range pairs {
			require.Less(t, pair[0], pair[1])
			require.Equal(t, transport(pair[0], pair[1]), kind)
		}
	})
}

// The published figures are those of the README, and their ratios those that it prints.
func TestPublishedFigures(t *testing.T) {
	all := bench.PublishedScaling()
	var workers []int
	for i, p := range all {
		workers = append(workers, p.Workers)
		require.Greater(t, p.Sharded, p.NCCL, "%d workers", p.Workers)
		require.Less(t, p.ShardedStd, .1*p.Sharded)
		require.Less(t, p.NCCLStd, .1*p.NCCL)
		require.True(t, i == 0 || p.Sharded > all[i-1].Sharded && p.NCCL > all[i-1].NCCL)
	}
	require.Equal(t, []int{1, 2, 4, 8, 16}, workers)
	growth := func(i int) string {
		return fmt.Sprintf("%.2f %.2f", all[i].Sharded/all[0].Sharded, all[i].NCCL/all[0].NCCL)
	}
	require.Equal(t, []string{"1.00 1.00", "2.58 1.47", "3.81 1.54", "5.16 1.76", "9.43 2.13"}, []string{growth(0), growth(1), growth(2), growth(3), growth(4)})
	all[0].NCCL = 0
	require.Equal(t, 116.7, bench.PublishedScaling()[0].NCCL, "each call returns a copy")
}

// A link may carry a little less than was counted, up to the tolerance.
func TestCheckWireTolerance(t *testing.T) {
	trial := bench.Trial{Sent: []int64{10_000}, Links: []bench.Link{}}
	for wire, fine := range map[int64]bool{9500: true, 9499: false, 0: false, 1 << 40: true} {
		trial.Wire = []int64{wire}
		require.Equal(t, fine, trial.CheckWire() == nil, "%d bytes", wire)
	}
	trial.Wire = nil
	require.NoError(t, trial.CheckWire(), "there are no counters")
	trial.Sent, trial.Wire = []int64{0, 0}, []int64{0, 0}
	require.NoError(t, trial.CheckWire(), "nothing was sent")
}

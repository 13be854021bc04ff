package calibration

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const us = time.Microsecond

// A hostModel says how long a trial takes on a host. Its figures are from
// docs/benchmarks.md and its results, rounded, or assumed where none were measured.
type hostModel struct {
	costs    Costs
	bySize   []sizeModel
	strings  float64 // of the time with ordinary stores
	streams  float64 // the same, if non-temporal stores make a difference
	rotates  float64 // of the time without rotation, if it makes a difference
	fetches  float64 // of the time of a call of up to 64 bytes without fetching, if it makes a difference
	chunk    map[int]float64
	small    float64 // of the time of a call that is staged, up to MostSmall
	step     map[int]float64
	perTrial float64 // time for one trial, with all its preparation, as a multiple of the call
}

// A sizeModel has the times of calls of up to the given number of bytes.
type sizeModel struct {
	bytes          int
	byCopy, byRead time.Duration
}

func (h *hostModel) took(t Trial) time.Duration {
	last := h.bySize[len(h.bySize)-1]
	at := last
	for _, s := range h.bySize {
		if t.Bytes <= s.bytes {
			at = s
			break
		}
	}
	scale := float64(t.Bytes) / float64(at.bytes)
	c := &t.Choices
	if c.Reads(t.Bytes) && !t.InPlace {
		return time.Duration(scale * float64(at.byRead))
	}
	took := scale * float64(at.byCopy)
	factor := func(of map[int]float64, value int) {
		if f, ok := of[value]; ok {
			took *= f
		}
	}
	switch {
	case t.InPlace:
		factor(h.step, c.InPlaceStep)
		return time.Duration(took / 3)
	case t.Bytes <= c.Small:
		took *= h.small
	default:
		factor(h.chunk, c.Chunk)
	}
	if c.PrefetchMost > 0 && t.Bytes <= 64 && h.fetches > 0 {
		took *= h.fetches
	}
	if t.Bytes > c.Small && t.Bytes <= c.RotateMost && h.rotates > 0 {
		took *= h.rotates
	}
	if c.StreamLeast != 0 && c.StreamLeast <= t.Bytes && h.streams > 0 {
		took *= h.streams
	}
	if c.StringLeast != 0 && c.StringLeast <= min(t.Bytes, c.Chunk) {
		took *= h.strings
	}
	return time.Duration(took)
}

// intel is a virtual Xeon with AVX-512 and 2 cores; zen3 a virtual EPYC. Reading through
// the kernel is a little faster on the one from 4 to 32 MiB, and takes twice as long on
// the other.
var (
	intel = hostModel{
		costs: Costs{Poll: 20 * time.Nanosecond, Yield: 400 * time.Nanosecond, Wake: 40 * us},
		bySize: []sizeModel{
			{bytes: 16 * kib, byCopy: 5 * us}, {bytes: 256 * kib, byCopy: 38 * us}, {bytes: mib, byCopy: 150 * us, byRead: 210 * us}, {bytes: 2 * mib, byCopy: 330 * us, byRead: 360 * us},
			{bytes: 8 * mib, byCopy: 1600 * us, byRead: 1370 * us}, {bytes: 32 * mib, byCopy: 6800 * us, byRead: 5800 * us}, {bytes: 64 * mib, byCopy: 14_000 * us, byRead: 16_000 * us},
		},
		strings: .94, small: .9, perTrial: 1.4,
		chunk: map[int]float64{64 * kib: 1.04, 128 * kib: 1, 256 * kib: 1.05},
		step:  map[int]float64{8 * kib: 1.03, 16 * kib: 1, 32 * kib: 1.02, 64 * kib: 1.08},
	}
	zen3 = hostModel{
		costs: Costs{Poll: 15 * time.Nanosecond, Yield: 200 * time.Nanosecond, Wake: 25 * us},
		bySize: []sizeModel{
			{bytes: 16 * kib, byCopy: 3 * us}, {bytes: 256 * kib, byCopy: 19 * us}, {bytes: mib, byCopy: 141 * us, byRead: 300 * us}, {bytes: 2 * mib, byCopy: 320 * us, byRead: 640 * us},
			{bytes: 8 * mib, byCopy: 1362 * us, byRead: 2636 * us}, {bytes: 32 * mib, byCopy: 6022 * us, byRead: 9598 * us}, {bytes: 64 * mib, byCopy: 10_370 * us, byRead: 20_000 * us},
		},
		strings: 1, small: .9, perTrial: 1.4,
		chunk: map[int]float64{64 * kib: 1.12, 128 * kib: 1, 256 * kib: .95},
		step:  map[int]float64{8 * kib: 1, 16 * kib: 1, 32 * kib: 1, 64 * kib: 1},
	}
)

// streaming is an EPYC whose ranks run on far cores.
func streaming(took float64) hostModel {
	h := zen3
	h.streams = took
	return h
}

// rotating is an EPYC whose calls take another time with rotation.
func rotating(took float64) hostModel {
	h := zen3
	h.rotates = took
	return h
}

// fetching is an EPYC whose small calls take another time if lines are fetched first.
func fetching(took float64) hostModel {
	h := zen3
	h.fetches = took
	return h
}

// smallChunks is a host whose best chunk is not the first.
func smallChunks() hostModel {
	h := zen3
	h.chunk = map[int]float64{64 * kib: .9, 128 * kib: 1, 256 * kib: 1.1}
	return h
}

// reader is like intel, but reading through the kernel is clearly faster.
func reader() hostModel {
	h := intel
	h.bySize = slices.Clone(intel.bySize)
	for i := range h.bySize {
		if b := h.bySize[i].bytes; b > 2*mib && b <= 32*mib {
			h.bySize[i].byRead = h.bySize[i].byCopy * 3 / 4
		}
	}
	return h
}

// A virtualMeter measures in virtual time.
type virtualMeter struct {
	hostModel
	slowdown  func(trial int) float64 // because of other load; nil for none
	disturbed func(trial int) bool
	trials    []Trial
	elapsed   time.Duration
}

func (m *virtualMeter) Costs() (Costs, error) { return m.costs, nil }

func (m *virtualMeter) Measure(t Trial) (Measurement, error) {
	took := float64(m.took(t))
	if m.slowdown != nil {
		took *= m.slowdown(len(m.trials))
	}
	took *= float64(t.Calls)
	m.elapsed += time.Duration(runs(t)*took*m.perTrial) + us
	r := Measurement{Took: time.Duration(took), Elapsed: m.elapsed}
	r.Disturbed = m.disturbed != nil && m.disturbed(len(m.trials))
	m.trials = append(m.trials, t)
	return r, nil
}

// runs returns how often the calls of a trial are made: small ones also to warm up.
func runs(t Trial) float64 {
	if t.Bytes <= mib {
		return 2
	}
	return 1
}

func run(t require.TestingT, m *virtualMeter, s Setting) Report {
	if s.Start == (Choices{}) {
		s.Start = Default(2)
	}
	r, err := Run(m, s)
	require.NoError(t, err)
	require.NoError(t, r.Choices.Check())
	return r
}

// runAll lets jobs measure until all experiments are done, and returns the last report
// and the number of jobs.
func runAll(t *testing.T, h hostModel, s Setting) (r Report, jobs int) {
	for jobs == 0 || r.Done < Experiments {
		r = run(t, &virtualMeter{hostModel: h}, s)
		require.Equal(t, FromTrials, r.Source)
		require.True(t, r.Lasting)
		require.Greater(t, r.Done, s.Done)
		if !s.Refine {
			require.LessOrEqual(t, r.Took, Bound)
		}
		s.Start, s.Done = r.Choices, r.Done
		jobs++
	}
	return r, jobs
}

func TestChoicesOfKnownHosts(t *testing.T) {
	for _, c := range []struct {
		name    string
		host    hostModel
		setting Setting
		want    string
	}{
		{"Intel", intel, Setting{Reads: true, Strings: true, Fetches: true}, "small=16K,chunk=128K,string-least=2K,stream-least=2K,rotate-most=128K,in-place-step=16K,prefetch-most=1K,read-least=4M,read-most=off,read-chunk=512K,polls=250,rounds=8,yields=50"},
		{"Intel, more time", intel, Setting{Reads: true, Strings: true, Fetches: true, Refine: true}, "small=16K,chunk=128K,string-least=2K,stream-least=2K,rotate-most=128K,in-place-step=16K,prefetch-most=1K,read-least=4M,read-most=off,read-chunk=512K,polls=250,rounds=8,yields=50"},
		{"Intel, which must not read", intel, Setting{Strings: true, Fetches: true}, "small=16K,chunk=128K,string-least=2K,stream-least=2K,rotate-most=128K,in-place-step=16K,prefetch-most=1K,read-least=4M,read-most=off,read-chunk=512K,polls=250,rounds=8,yields=50"},
		{"reader", reader(), Setting{Reads: true, Strings: true, Fetches: true}, "small=16K,chunk=128K,string-least=2K,stream-least=2K,rotate-most=128K,in-place-step=16K,prefetch-most=1K,read-least=4M,read-most=32M,read-chunk=512K,polls=250,rounds=8,yields=50"},
		{"reader, more time", reader(), Setting{Reads: true, Strings: true, Fetches: true, Refine: true}, "small=16K,chunk=128K,string-least=2K,stream-least=2K,rotate-most=128K,in-place-step=16K,prefetch-most=1K,read-least=4M,read-most=32M,read-chunk=512K,polls=250,rounds=8,yields=50"},
		{"Zen 3", zen3, Setting{Reads: true, Strings: true, Fetches: true}, "small=16K,chunk=128K,string-least=2K,stream-least=2K,rotate-most=128K,in-place-step=16K,prefetch-most=1K,read-least=4M,read-most=off,read-chunk=512K,polls=333,rounds=5,yields=100"},
		{"Zen 3, more time", zen3, Setting{Reads: true, Strings: true, Fetches: true, Refine: true}, "small=16K,chunk=128K,string-least=2K,stream-least=2K,rotate-most=128K,in-place-step=16K,prefetch-most=1K,read-least=4M,read-most=off,read-chunk=512K,polls=333,rounds=5,yields=100"},
		{"small chunks", smallChunks(), Setting{Reads: true, Strings: true, Fetches: true}, "small=16K,chunk=64K,string-least=2K,stream-least=2K,rotate-most=128K,in-place-step=16K,prefetch-most=1K,read-least=4M,read-most=off,read-chunk=512K,polls=333,rounds=5,yields=100"},
		{"far cores", streaming(.2), Setting{Reads: true, Strings: true, Fetches: true}, "small=16K,chunk=128K,string-least=2K,stream-least=2K,rotate-most=128K,in-place-step=16K,prefetch-most=1K,read-least=4M,read-most=off,read-chunk=512K,polls=333,rounds=5,yields=100"},
		{"far cores that stream slowly", streaming(1.4), Setting{Reads: true, Strings: true, Fetches: true}, "small=16K,chunk=128K,string-least=2K,stream-least=32K,rotate-most=128K,in-place-step=16K,prefetch-most=1K,read-least=4M,read-most=off,read-chunk=512K,polls=333,rounds=5,yields=100"},
		{"rotation saves time", rotating(.6), Setting{Reads: true, Strings: true, Fetches: true}, "small=2K,chunk=128K,string-least=2K,stream-least=2K,rotate-most=128K,in-place-step=16K,prefetch-most=1K,read-least=4M,read-most=off,read-chunk=512K,polls=333,rounds=5,yields=100"},
		{"rotation takes time", rotating(1.2), Setting{Reads: true, Strings: true, Fetches: true}, "small=16K,chunk=128K,string-least=2K,stream-least=2K,rotate-most=off,in-place-step=16K,prefetch-most=1K,read-least=4M,read-most=off,read-chunk=512K,polls=333,rounds=5,yields=100"},
		{"fetching takes a little time", fetching(1.04), Setting{Reads: true, Strings: true, Fetches: true}, "small=16K,chunk=128K,string-least=2K,stream-least=2K,rotate-most=128K,in-place-step=16K,prefetch-most=1K,read-least=4M,read-most=off,read-chunk=512K,polls=333,rounds=5,yields=100"},
		{"fetching takes time", fetching(1.06), Setting{Reads: true, Strings: true, Fetches: true}, "small=16K,chunk=128K,string-least=2K,stream-least=2K,rotate-most=128K,in-place-step=16K,prefetch-most=off,read-least=4M,read-most=off,read-chunk=512K,polls=333,rounds=5,yields=100"},
		{"cannot fetch", zen3, Setting{Reads: true, Strings: true}, "small=16K,chunk=128K,string-least=2K,stream-least=2K,rotate-most=128K,in-place-step=16K,prefetch-most=off,read-least=4M,read-most=off,read-chunk=512K,polls=333,rounds=5,yields=100"},
		{"Zen 3 without string moves", zen3, Setting{Reads: true, Fetches: true}, "small=16K,chunk=128K,string-least=off,stream-least=2K,rotate-most=128K,in-place-step=16K,prefetch-most=1K,read-least=4M,read-most=off,read-chunk=512K,polls=333,rounds=5,yields=100"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, jobs := runAll(t, c.host, c.setting)
			require.Equal(t, c.want, r.Choices.String())
			require.LessOrEqual(t, jobs, 4)
		})
	}
}

// On a slow host, no experiment fits into the time of a search. Each job passes one, and
// the preferred ways stay.
func TestSlowHost(t *testing.T) {
	slow := zen3
	slow.bySize = nil
	for _, at := range zen3.bySize {
		slow.bySize = append(slow.bySize, sizeModel{at.bytes, 500 * at.byCopy, 500 * at.byRead})
	}
	m := &virtualMeter{hostModel: slow}
	s := Setting{Reads: true, Done: 5, Start: Default(2)}
	r := run(t, m, s)
	require.Equal(t, 6, r.Done)
	require.Equal(t, Default(2).Chunk, r.Choices.Chunk)
}

// Ways that take the same time are seldom told apart by noise: a third of the trials are
// slow, and one in 20 is lucky.
func TestNoise(t *testing.T) {
	even := hostModel{small: 1, strings: 1, perTrial: 1.4, costs: zen3.costs}
	for _, at := range zen3.bySize {
		even.bySize = append(even.bySize, sizeModel{at.bytes, at.byCopy, at.byCopy})
	}
	s := Setting{Reads: true, Strings: true, Fetches: true, Start: Default(2), Costs: even.costs}
	s.Start.Chunk = 128 * kib // the preferred
	want := s.start()
	changed := 0
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 0))
		r := run(t, &virtualMeter{hostModel: even, slowdown: func(int) float64 {
			switch random.IntN(60) / 3 {
			case 0:
				return .8
			case 1, 2, 3, 4, 5, 6:
				return 1 + random.Float64()
			}
			return 1 + .02*random.Float64()
		}}, s)
		if r.Choices != want {
			changed++
		}
	}
	require.LessOrEqual(t, changed, 2)
}

// The range of sizes that are read follows the measurements.
func TestReadRange(t *testing.T) {
	for _, c := range []struct {
		from, to int // sizes at which reading is faster
		want     string
	}{
		{mib, 64 * mib, "read-least=1M,read-most=64M"},
		{2 * mib, 32 * mib, "read-least=2M,read-most=32M"},
		{4 * mib, 8 * mib, "read-least=4M,read-most=8M"},
		{8 * mib, 16 * mib, "read-least=8M,read-most=16M"},
		{64 * mib, 64 * mib, "read-most=off"},
		{4 * mib, 4 * mib, "read-least=4M,read-most=8M"}, // nothing between 4 and 16 MiB is measured if 4 MiB are read
	} {
		var h hostModel
		for _, e := range experiments {
			s := sizeModel{bytes: e.bytes, byCopy: time.Duration(e.bytes) / 8}
			if s.byRead = 2 * s.byCopy; c.from <= e.bytes && e.bytes <= c.to {
				s.byRead = s.byCopy / 2
			}
			if e.bytes >= mib {
				h.bySize = append(h.bySize, s)
			}
		}
		h.small, h.strings, h.perTrial = 1, 1, 1.4
		h.bySize = sorted(h.bySize)
		r := run(t, &virtualMeter{hostModel: h}, Setting{Reads: true, Strings: true, Fetches: true, Refine: true})
		require.Contains(t, r.Choices.String(), c.want)
	}
}

// sorted keeps one model for each size, in order.
func sorted(all []sizeModel) []sizeModel {
	var kept []sizeModel
	for bytes := mib; bytes <= 64*mib; bytes *= 2 {
		for _, s := range all {
			if s.bytes == bytes {
				kept = append(kept, s)
				break
			}
		}
	}
	return kept
}

// However slow the host is and whatever disturbs it, the trials end in time, and what
// they choose is possible.
func TestBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := rapid.SampledFrom([]hostModel{intel, zen3}).Draw(t, "host")
		slow := math.Exp(rapid.Float64Range(-2, 6).Draw(t, "slow"))
		noise := rapid.SliceOfN(rapid.Float64Range(1, 100), 1, 20).Draw(t, "noise")
		m := &virtualMeter{hostModel: h, slowdown: func(trial int) float64 { return slow * noise[trial%len(noise)] }}
		r := run(t, m, Setting{Reads: true, Strings: true, Fetches: true})
		last := time.Duration(0)
		if n := len(m.trials); n > 0 {
			t := m.trials[n-1]
			last = time.Duration(slow*noise[(n-1)%len(noise)]*m.perTrial*float64(t.Calls)*runs(t)*float64(h.took(t))) + 2*us
		}
		require.Less(t, r.Took, Bound+last)
	})
}

// Choices made while other load keeps ranks from their cores, or while times vary, are
// not for other jobs. If most trials were disturbed, they are not for this job either.
func TestDisturbedTrials(t *testing.T) {
	setting := Setting{Reads: true, Strings: true, Fetches: true}
	host := smallChunks()
	m := &virtualMeter{hostModel: host, disturbed: func(int) bool { return true }}
	always := run(t, m, setting)
	require.False(t, always.Lasting)
	require.GreaterOrEqual(t, always.Took, Bound/4)
	require.Less(t, always.Took, Bound/4+m.took(m.trials[0])*2, "it gives up")
	want := setting
	want.Start, want.Costs = Default(2), host.costs
	require.Equal(t, want.start(), always.Choices)

	setting.Done = slices.IndexFunc(experiments[:], func(e experiment) bool { return e.bytes == mib }) // which is that with chunks
	sometimes := run(t, &virtualMeter{hostModel: host, disturbed: func(trial int) bool { return trial%5 == 0 }}, setting)
	require.False(t, sometimes.Lasting)
	require.Equal(t, 64*kib, sometimes.Choices.Chunk)

	noisy := run(t, &virtualMeter{hostModel: host, slowdown: func(trial int) float64 { return 1 + 2*float64(trial%7/3) }}, setting)
	require.False(t, noisy.Lasting)

	once := run(t, &virtualMeter{hostModel: host, slowdown: func(trial int) float64 {
		if trial%50 == 7 && trial < 100 {
			return 20
		}
		return 1
	}}, setting)
	require.True(t, once.Lasting, "a rare disturbance does not count")
	require.Equal(t, 64*kib, once.Choices.Chunk)
}

// In the first trials, two ranks often share a core. The search repeats these trials and
// ignores their times.
func TestDisturbedAtFirst(t *testing.T) {
	setting := Setting{Reads: true, Strings: true, Fetches: true, Done: slices.IndexFunc(experiments[:], func(e experiment) bool { return e.bytes == 4*kib })}
	first := func(trial int) bool { return trial < 8 }
	m := &virtualMeter{hostModel: zen3, disturbed: first, slowdown: func(trial int) float64 {
		if first(trial) {
			return .1
		}
		return 1
	}}
	r := run(t, m, setting)
	quiet := &virtualMeter{hostModel: zen3}
	require.Equal(t, run(t, quiet, setting).Choices, r.Choices)
	require.Len(t, m.trials, len(quiet.trials)+8)
	require.True(t, r.Lasting)
}

// A failed trial ends the search with its error.
func TestFailedTrial(t *testing.T) {
	_, err := Run(failing{}, Setting{Start: Default(2)})
	require.ErrorIs(t, err, errTrial)
	_, err = Run(&failing{costs: true}, Setting{Start: Default(2)})
	require.ErrorIs(t, err, errTrial)
}

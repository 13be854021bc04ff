package shm

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/cpu"
	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/calibration"
	"github.com/ringtrain/ringtrain/collective/publish"
)

// calibrate makes the choices of this host's ranks: those in the region or, if there it
// says so, what trial calls show. The ranks make them on the transports that they will
// use, not in threads of one process: a Go process that may use one core has no two
// threads that run at a time, and process_vm_readv in one's own process waits for locks
// that two processes do not share.
func (t *Transport) calibrate(ctx context.Context, o *Options) error {
	c, from, s, err := t.mem.chosen()
	if err != nil {
		return err
	}
	t.adopt(c)
	report := calibration.Report{Choices: c, Source: from}
	if s != noSearch {
		if report, err = t.choose(ctx, o, s); err != nil {
			return err
		}
	}
	if report.Ranks = len(t.ranks); o.Calibrated != nil {
		o.Calibrated(report)
	}
	return nil
}

// choose makes the choices by a search. They are those of all ranks of the host when it
// returns, and rank 0 has saved them.
func (t *Transport) choose(ctx context.Context, o *Options, s search) (calibration.Report, error) {
	defer collective.AbortOnCancel(ctx, t, t.view.Self)()
	report, err := t.search(s)
	if err != nil {
		return report, err
	}
	if t.self == 0 {
		if report.Lasting && len(o.Calibration.Fixed) == 0 {
			t.keep(o, calibration.Kept{Choices: report.Choices, Done: report.Done})
		}
		t.mem.choose(o.Calibration.Fix(report.Choices), calibration.FromTrials, noSearch)
	}
	m := meter{t: t}
	if err := m.barrier(); err != nil {
		return report, err
	}
	if report.Choices, _, _, err = t.mem.chosen(); err != nil {
		return report, err
	}
	t.adopt(report.Choices)
	return report, nil
}

// keep saves choices for other jobs. A host without a place for them measures again.
func (t *Transport) keep(o *Options, k calibration.Kept) {
	if err := o.Calibration.Store.Save(len(t.ranks), k); err != nil && o.Log != nil {
		o.Log.Debug("the choices of this host's calibration cannot be cached, so the next job measures again", "reason", err)
	}
}

// search makes trial calls.
func (t *Transport) search(s search) (calibration.Report, error) {
	m := &meter{t: t, began: time.Now()}
	defer m.free()
	setting := calibration.Setting{Start: t.choices, Reads: t.reads, Strings: cpu.X86.HasERMS, Fetches: publish.Prefetches, Refine: s == fullSearch}
	if s > searchAfter {
		setting.Done = int(s - searchAfter)
	}
	return calibration.Run(m, setting)
}

// A meter measures trial calls, and is a calibration.Meter. Its calls are those of a
// group of its own.
type meter struct {
	t     *Transport
	began time.Time
	seq   uint64
	call  collective.Operation // the last call
	heap  []byte               // the vectors
	all   []int64              // what the ranks tell each other
}

// trialGroup is the group of trial calls in headers.
const trialGroup = ^uint32(0)

// operation returns the next call, in the memory of the last one. New memory would now and then
// need another page, and the other ranks would time how long this one waits for it.
func (m *meter) operation(kind collective.Kind, dst, src collective.Vector) *collective.Operation {
	m.seq++
	v := &m.t.view
	call := collective.Call{Kind: kind, DType: src.DType(), Count: uint64(src.Len())}
	if kind == collective.KindAllReduce {
		call.Op = collective.Sum
	}
	h := collective.Header{Job: v.Job, Epoch: v.Epoch, Group: trialGroup, Seq: m.seq, Len: uint32(src.Bytes()), Call: call}
	m.call = collective.Operation{Header: h, Dst: dst, Src: src}
	return &m.call
}

func (m *meter) barrier() error {
	return m.t.Barrier(m.operation(collective.KindBarrier, collective.Vector{}, collective.Vector{}))
}

// share returns the words of all ranks.
func (m *meter) share(mine ...int64) ([]int64, error) {
	m.all = slices.Grow(m.all[:0], len(mine)*len(m.t.ranks))[:len(mine)*len(m.t.ranks)]
	return m.all, m.t.Exchange(m.operation(collective.KindAllGather, collective.Of(m.all), collective.Of(mine)))
}

// Costs is part of calibration.Meter. All ranks get the lowest costs that any of them
// has measured, except 0, which means that it was not measured.
func (m *meter) Costs() (c calibration.Costs, err error) {
	if _, err := m.share(0, 0, 0, m.core()); err != nil {
		return c, err
	}
	m.separate() // to yield a core costs more if another rank takes it
	never := uint64(0)
	mine := []int64{
		int64(cheapest(100, func() { spin(&never, 1, 100) })),
		int64(cheapest(20, func() {
			for range 20 {
				_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
			}
		})),
	}
	if err := m.barrier(); err != nil {
		return c, err
	}
	mine = append(mine, int64(m.wakeCost()))
	all, err := m.share(mine...)
	if err != nil {
		return c, err
	}
	costs := [3]int64{}
	for i, cost := range all {
		if least := &costs[i%3]; cost > 0 && (*least == 0 || cost < *least) {
			*least = cost
		}
	}
	c.Poll, c.Yield, c.Wake = time.Duration(costs[0]), time.Duration(costs[1]), time.Duration(costs[2])
	return c, nil
}

// cheapest returns the time of one of n acts that do makes, in the fastest of a few
// attempts.
func cheapest(n int, do func()) time.Duration {
	least := time.Duration(0)
	for i := range 5 {
		began := time.Now()
		do()
		if took := time.Since(began); i == 0 || took < least {
			least = took
		}
	}
	return max(1, least/time.Duration(n))
}

// warmBytes is the size up to which a trial is the second of two calls. The trial before
// it was of another way and has left its data, not those of this way, in the caches.
const warmBytes = 1 << 20

// Measure is part of calibration.Meter. As in training, the vectors have just been
// written when the call begins.
func (m *meter) Measure(trial calibration.Trial) (r calibration.Measurement, err error) {
	t := m.t
	t.adopt(trial.Choices)
	vector, err := m.vector(trial)
	if err != nil {
		return r, err
	}
	defer func() { t.trialViews = nil }()
	v, err := collective.OfBytes(vector, collective.Float32)
	if err != nil {
		return r, err
	}
	warm := 0
	if trial.Bytes <= warmBytes {
		warm = 1
	}
	var began threadTime
	var took time.Duration
	for call := range warm + max(1, trial.Calls) {
		clear(vector)
		if err := m.barrier(); err != nil {
			return r, err
		}
		if call == warm {
			began = threadNow()
		}
		start := time.Now()
		if err := t.AllReduce(m.operation(collective.KindAllReduce, v, v)); err != nil {
			return r, err
		}
		if call >= warm {
			took += time.Since(start)
		}
	}
	disturbed := int64(0)
	if disturbs(began.offCore(), time.Since(began.wall)) {
		disturbed = 1
	}
	all, err := m.share(int64(took), int64(time.Since(m.began)), disturbed, m.core())
	if err != nil {
		return r, err
	}
	r.Elapsed = time.Duration(all[1])
	for i := 0; i < len(all); i += 4 {
		r.Took = max(r.Took, time.Duration(all[i]))
		r.Disturbed = r.Disturbed || all[i+2] != 0
	}
	r.Disturbed = m.separate() || r.Disturbed
	return r, nil
}

// core returns the core of this rank, or 0 if it is unknown or the ranks share cores
// anyway.
func (m *meter) core() int64 {
	if !m.t.named || m.t.rounds == 0 {
		return 0
	}
	return int64(core())
}

// separate reports whether two ranks have just told each other the same core, although
// each could have its own. Then all but the lowest of them leave it.
func (m *meter) separate() (together bool) {
	var lower []uint64
	for i := range m.t.ranks {
		on := uint64(m.all[4*i+3])
		if on != 0 && slices.Contains(lower, on) {
			if together = true; i == m.t.self {
				leaveCores(lower)
				atomic.StoreUint64(m.t.where(i), core()) // or the others would still yield theirs to this rank
			}
		}
		lower = append(lower, on)
	}
	return together
}

// vector returns the vector of a trial.
func (m *meter) vector(trial calibration.Trial) ([]byte, error) {
	t := m.t
	if trial.InPlace { // the stages are unused by such a call
		for peer := range t.ranks {
			t.trialViews = append(t.trialViews, t.mem.bytes(t.mem.stages+peer*stageSlots*calibration.MostChunk, trial.Bytes))
		}
		return t.trialViews[t.self], nil
	}
	if len(m.heap) < trial.Bytes {
		m.free()
		// Mapped, not made, so that it goes back to the system at the end.
		heap, err := unix.Mmap(-1, 0, trial.Bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
		if err != nil {
			return nil, fmt.Errorf("shm: no memory for a trial call of %d bytes: %w", trial.Bytes, err)
		}
		m.heap = heap
	}
	return m.heap[:trial.Bytes], nil
}

func (m *meter) free() {
	if m.heap != nil {
		_ = unix.Munmap(m.heap)
		m.heap = nil
	}
}

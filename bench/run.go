package bench

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ringtrain/ringtrain/collective"
)

// The number of iterations, if a Spec has none: as many as fill its Time or adaptTime.
const (
	adaptTime = 250 * time.Millisecond
	adaptMin  = 5         // with either
	adaptMax  = 20_000    // with adaptTime
	mostEver  = 1_000_000 // with Time; their times take 8 MB per rank
)

// A Spec says what to measure. It must be equal on every rank, except Alloc, Device
// and Each.
type Spec struct {
	Op         string           // a name of Operations
	DType      collective.DType // any
	Reduction  collective.Op    // for operations that reduce
	Root       int              // for operations that have one
	Sizes      []int            // bytes; see the package comment and Sweep
	Warmup     int              // iterations that do not count; at least 2 if Iterations is 0
	Iterations int              // that count; 0: see Time
	Check      bool             // compare results with the correct ones

	// Time is the minimum duration of the iterations of each size and placement, if
	// Iterations is 0. There are at most a million. 0 means as many iterations as fit in
	// a quarter of a second, from 5 to 20,000.
	Time time.Duration

	// Garbage is how many pieces of 64 KB a goroutine of each rank allocates and drops
	// per millisecond during the run, so that the collector runs; at most 1000.
	Garbage int

	// Way describes how the caller configured the group, such as the order of sums and
	// the algorithm. Run only compares it between the ranks.
	Way string

	// Alloc makes the memory of the calls and of their input, once each. nil means Go's heap.
	Alloc func(t collective.DType, count int) (collective.Vector, error)

	// Device, if not nil, has the memory of the calls. Then Alloc must be nil.
	Device Device

	// Each gets every row as soon as it is measured, on every rank; may be nil.
	Each func(Row)
}

// Validate returns why a group of n ranks cannot measure a Spec, or nil.
func (s Spec) Validate(n int) error {
	op, ok := operations[s.Op]
	switch {
	case !ok:
		return fmt.Errorf("unknown operation %q; use one of %s", s.Op, strings.Join(Operations(), ", "))
	case op.rooted && (s.Root < 0 || s.Root >= n):
		return fmt.Errorf("the root must be a rank from 0 to %d, not %d", n-1, s.Root)
	case op.reduces && (s.Reduction < collective.Sum || s.Reduction > collective.Prod):
		return fmt.Errorf("reduction %v is not known", s.Reduction)
	case n < op.least:
		return fmt.Errorf("%s needs at least %d ranks", s.Op, op.least)
	case s.Time < 0:
		return fmt.Errorf("a size cannot be measured for %v", s.Time)
	case s.Garbage < 0 || s.Garbage > garbageMost:
		return fmt.Errorf("%d pieces of garbage per millisecond: give 0 to %d", s.Garbage, garbageMost)
	case s.Warmup < 0 || s.Iterations < 0:
		return fmt.Errorf("%d iterations and %d warm-up iterations: neither may be negative", s.Iterations, s.Warmup)
	}
	_, err := allocate(s.DType, 0)
	return err
}

// checkSizes returns an error if no machine can measure one of the sizes.
func (s Spec) checkSizes() error {
	for _, size := range s.Sizes {
		if size < 1 || int64(size) > mostSize {
			return fmt.Errorf("bench: a size of %d bytes cannot be measured: sizes are from 1 to %d", size, mostSize)
		}
	}
	return nil
}

// mostSize is more than any machine has memory for, but can be counted.
const mostSize = int64(1 << 46)

// Run measures every size and returns the rows, the same on every rank. All ranks of
// the group must call it with the same Spec, and must not use the group otherwise until
// it returns. Its errors are those of Validate, of sizes that no machine can measure, a
// *SpecError, which is the same on every rank, and those of the group, which is then
// broken.
func Run(ctx context.Context, g *collective.Group, s Spec) ([]Row, error) {
	if err := s.Validate(g.Size()); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	if err := s.checkSizes(); err != nil {
		return nil, err
	}
	if err := s.agree(ctx, g); err != nil {
		return nil, err
	}
	defer litter(s.Garbage)()
	op := operations[s.Op]
	memory, err := s.memory(op, g.Size())
	if err != nil {
		return nil, err
	}
	var rows []Row
	last := 0
	for i, size := range s.Sizes {
		spread := max(op.in(g.Size()), op.out(g.Size()))
		count := max(1, size/s.DType.Size()/spread)
		if count == last {
			continue
		}
		last = count
		row := Row{Op: s.Op, DType: s.DType, Root: -1, Ranks: g.Size(), Size: count * spread * s.DType.Size(), Count: count}
		if op.reduces {
			row.Reduction = s.Reduction
		}
		if op.rooted {
			row.Root = s.Root
		}
		b := &buffers{group: g, spec: &s, op: op, count: count}
		if err := b.allocate(uint64(i), memory); err != nil {
			return rows, err
		}
		if s.Op == "allreduce" {
			row.Plan = g.PlanAllReduce(b.work, s.Reduction)
		}
		if row.Out, err = b.outside().measure(ctx); err != nil {
			return rows, err
		}
		if op.inside != nil {
			if row.In, err = b.inside().measure(ctx); err != nil {
				return rows, err
			}
		}
		rows = append(rows, row)
		if s.Each != nil {
			s.Each(row)
		}
	}
	return rows, nil
}

// buffers has the memory of one size on this rank.
type buffers struct {
	group *collective.Group
	spec  *Spec
	op    *operation
	count int

	given collective.Vector // this rank's input
	want  collective.Vector // its correct result; a zero Vector if it is not checked
	work  collective.Vector // of the calls: the larger of input and result
	got   collective.Vector // host copy of a Device's result
}

// memory allocates for the largest size, with Alloc or Device.
func (s *Spec) memory(op *operation, ranks int) (p places, err error) {
	if s.Alloc == nil && s.Device == nil || len(s.Sizes) == 0 {
		return p, nil
	}
	spread := max(op.in(ranks), op.out(ranks))
	most := max(1, slices.Max(s.Sizes)/s.DType.Size()/spread) * spread
	alloc := s.Alloc
	if s.Device != nil {
		alloc = s.Device.Alloc
	}
	if p.given, err = alloc(s.DType, most); err == nil {
		p.work, err = alloc(s.DType, most)
	}
	return p, err
}

// allocate makes the vectors, from memory where that has them, and fills in this
// rank's input and, with checks, its correct result. seed determines the input.
func (b *buffers) allocate(seed uint64, memory places) (err error) {
	g, s, op, count := b.group, b.spec, b.op, b.count
	n := g.Size()
	o := &oracle{seed: seed, ranks: n, root: s.Root, count: count, dtype: s.DType}
	var results *oracle
	if op.reduces {
		o.reduction, results = s.Reduction, o
	}
	if s.Alloc != nil {
		b.given = memory.given.Slice(0, count*op.in(n))
	} else if b.given, err = allocate(s.DType, count*op.in(n)); err != nil {
		return err
	}
	fill(b.given, nil, func(j int) int64 { return o.input(g.Rank(), j) })
	if s.Device != nil {
		remote := memory.given.Slice(0, b.given.Len())
		if err := s.Device.Write(remote, host(b.given)); err != nil {
			return err
		}
		b.given = remote
	}
	if most := count * max(op.in(n), op.out(n)); memory.work.Len() >= most {
		b.work = memory.work.Slice(0, most)
	} else if b.work, err = allocate(s.DType, most); err != nil {
		return err
	}
	if !b.checks() {
		return nil
	}
	if b.want, err = allocate(s.DType, count*op.out(n)); err != nil {
		return err
	}
	if s.Device != nil {
		if b.got, err = allocate(s.DType, b.want.Len()); err != nil {
			return err
		}
	}
	for part := range op.out(n) {
		fill(b.want.Slice(part*count, (part+1)*count), results, func(j int) int64 { return op.want(o, g.Rank(), part, j) })
	}
	return nil
}

// checks reports whether this rank compares results: it may not get any.
func (b *buffers) checks() bool {
	return b.spec.Check && (!b.op.onlyRoot || b.group.Rank() == b.spec.Root)
}

// outside returns the out-of-place trial.
func (b *buffers) outside() *trial {
	return b.trial(b.work.Slice(0, b.count*b.op.out(b.group.Size())), b.given)
}

// inside returns the in-place trial.
func (b *buffers) inside() *trial {
	return b.trial(b.op.inside(b.group.Rank(), b.count, b.work))
}

func (b *buffers) trial(dst, src collective.Vector) *trial {
	t := &trial{buffers: b, operands: operands{dst: dst, src: src, apart: !sameMemory(dst, src)}, refill: !sameMemory(src, b.given)}
	if b.spec.Device == nil {
		t.clears = host(b.work)
	}
	return t
}

// A trial is one size in one placement. If ranks share a core, what one of them does between
// calls is part of the time of another's call, so ready finds refill and clears here.
type trial struct {
	*buffers
	operands
	refill bool   // the input is overwritten by each call
	clears []byte // work, if it is in host memory
}

// measure makes the warm-up iterations and those that count.
func (t *trial) measure(ctx context.Context) (*Timing, error) {
	n := t.spec.Iterations
	warm := t.spec.Warmup
	if n == 0 {
		warm = max(warm, 2) // to find out how long an iteration takes
	}
	shortest := math.Inf(1)
	for i := range warm {
		begin := time.Now()
		if _, _, err := t.once(ctx); err != nil {
			return nil, fmt.Errorf("warming up, iteration %d: %w", i, err)
		}
		shortest = min(shortest, time.Since(begin).Seconds())
	}
	if n == 0 {
		took, err := gather(ctx, t.group, []float64{shortest})
		if err != nil {
			return nil, err
		}
		n = adapt(slices.Max(took), t.spec.Time)
	}
	var mine, read []float64
	wrong := int64(0)
	for n > 0 {
		more, moreRead, bad, err := t.several(ctx, n)
		if err != nil {
			return nil, err
		}
		mine, read, wrong = append(mine, more...), append(read, moreRead...), wrong+bad
		if n, err = t.missing(ctx, mine); err != nil {
			return nil, err
		}
	}
	every, err := gather(ctx, t.group, append(mine, float64(wrong)))
	if err != nil {
		return nil, err
	}
	timing := summarize(every, len(mine))
	if !t.spec.Check {
		timing.Wrong = -1
		return timing, nil
	}
	if every, err = gather(ctx, t.group, append(read, 0)); err != nil {
		return nil, err
	}
	timing.Read = summarize(every, len(read)).Median
	return timing, nil
}

// several makes n iterations. It returns their microseconds, without and with a
// comparison of the result, and the number of wrong elements.
func (t *trial) several(ctx context.Context, n int) (times, read []float64, wrong int64, err error) {
	times, read = make([]float64, n), make([]float64, n)
	got, want, width := host(t.got), host(t.want), t.spec.DType.Size()
	if t.spec.Device == nil {
		got = host(t.dst)[:len(want)]
	}
	for i := range n {
		begin, end, err := t.once(ctx)
		if err != nil {
			return nil, nil, 0, fmt.Errorf("iteration %d of %d: %w", i, n, err)
		}
		times[i] = microseconds(end - begin)
		if t.spec.Check {
			if t.spec.Device != nil && len(want) > 0 {
				if err := t.spec.Device.Read(got, t.dst); err != nil {
					return nil, nil, 0, err
				}
			}
			wrong += countWrong(got, want, width)
			read[i] = microseconds(time.Since(origin) - begin)
		}
	}
	return times, read, wrong, nil
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// missing returns how many iterations are still needed after those of mine, the same
// number on every rank.
func (t *trial) missing(ctx context.Context, mine []float64) (int, error) {
	fill := t.spec.Time.Seconds() * 1e6
	if t.spec.Iterations > 0 || fill == 0 {
		return 0, nil
	}
	sum := 0.
	for _, x := range mine {
		sum += x
	}
	every, err := gather(ctx, t.group, []float64{sum})
	sum = slices.Max(every)
	if err != nil || sum >= fill || len(mine) >= mostEver {
		return 0, err
	}
	n := math.Ceil((fill/max(sum, 1) - 1) * float64(len(mine)))
	return int(min(max(n, 1), float64(mostEver-len(mine)))), nil
}

// origin is what times are measured from. time.Now also reads the wall clock, which
// would delay a small call by a twentieth.
var origin = time.Now()

// once makes one iteration and returns when its call began and ended on this rank, after
// origin.
func (t *trial) once(ctx context.Context) (begin, end time.Duration, err error) {
	if err := t.ready(ctx); err != nil {
		return 0, 0, err
	}
	if err := t.group.Barrier(ctx); err != nil {
		return 0, 0, err
	}
	begin = time.Since(origin)
	err = t.op.call(ctx, t.group, t.spec, &t.operands)
	return begin, time.Since(origin), err
}

// adapt returns how many iterations to make, if each takes this many seconds.
func adapt(seconds float64, fill time.Duration) int {
	least, most := adaptMin, mostEver
	if fill == 0 {
		fill, most = adaptTime, adaptMax
	}
	n := math.Ceil(fill.Seconds() / max(seconds, 1e-9))
	return max(least, int(min(n, float64(most))))
}

// gather returns every rank's numbers, in rank order. It does not use a reduction,
// because the arithmetic of reductions may be what is wrong.
func gather(ctx context.Context, g *collective.Group, mine []float64) ([]float64, error) {
	every := make([]float64, len(mine)*g.Size())
	return every, collective.AllGather(ctx, g, every, mine)
}

// summarize makes a Timing of every rank's n times and wrong elements. In each
// iteration the slowest rank counts.
func summarize(every []float64, n int) *Timing {
	slowest, wrong := make([]float64, n), int64(0)
	for mine := range slices.Chunk(every, n+1) {
		for i := range slowest {
			slowest[i] = max(slowest[i], mine[i])
		}
		wrong += int64(mine[n])
	}
	return &Timing{Iterations: n, Median: Median(slowest), Mean: mean(slowest), P99: Quantile(slowest, .99), Wrong: wrong}
}

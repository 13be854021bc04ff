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

// How many iterations are made when a Spec does not say: as many as fill its
// time, or adaptTime, and then within bounds.
const (
	adaptTime = 250 * time.Millisecond
	adaptMin  = 5
	adaptMax  = 2000
	mostEver  = 1_000_000 // of which all ranks' times take 8 MB each
)

// A Spec says what to measure. It is the same on every rank.
type Spec struct {
	Op         string           // a name of Operations
	DType      collective.DType // any
	Reduction  collective.Op    // for operations that reduce
	Root       int              // for operations that have one
	Sizes      []int            // bytes, see the package comment and Sweep
	Warmup     int              // iterations that are not counted; 2 at least if Iterations is 0
	Iterations int              // counted ones; 0: see Time
	Check      bool             // whether results are compared with the right ones

	// Time is how long the counted iterations of each size and placement go on
	// at least, if Iterations is 0 and a million of them last so long. 0: as
	// many as a quarter of a second holds, from 5 to 2000.
	Time time.Duration

	// Garbage is how many pieces of 64 KB a goroutine of each rank allocates and
	// drops every millisecond meanwhile, so that the collector runs; 1000 at most.
	Garbage int

	// Way is how the caller has set the group up, such as the order of sums and
	// the algorithm. It is compared between the ranks, and used for nothing.
	Way string

	// Alloc makes the memory that calls work on, once; nil is Go's heap.
	Alloc func(t collective.DType, count int) (collective.Vector, error)

	// Device is memory that calls work on instead, if it is not nil; Alloc is.
	Device Device

	// Each is told every row as soon as it is there, on every rank; may be nil.
	Each func(Row)
}

// Validate says what of a Spec cannot be measured in a group of n ranks.
func (s Spec) Validate(n int) error {
	op, ok := operations[s.Op]
	switch {
	case !ok:
		return fmt.Errorf("operation %q is not known; there are %s", s.Op, strings.Join(Operations(), ", "))
	case op.rooted && (s.Root < 0 || s.Root >= n):
		return fmt.Errorf("rank %d cannot be the root: there are ranks 0 to %d", s.Root, n-1)
	case op.reduces && (s.Reduction < collective.Sum || s.Reduction > collective.Prod):
		return fmt.Errorf("reduction %v is not known", s.Reduction)
	case n < op.least:
		return fmt.Errorf("%s takes %d ranks at least", s.Op, op.least)
	case s.Time < 0:
		return fmt.Errorf("a size cannot be measured for %v", s.Time)
	case s.Garbage < 0 || s.Garbage > garbageMost:
		return fmt.Errorf("%d pieces of garbage a millisecond: there can be from 0 to %d", s.Garbage, garbageMost)
	case s.Warmup < 0 || s.Iterations < 0:
		return fmt.Errorf("%d iterations and %d to warm up: neither can be negative", s.Iterations, s.Warmup)
	}
	_, err := allocate(s.DType, 0)
	return err
}

// Run measures every size and returns the rows, the same on every rank. All
// ranks of the group call it with the same Spec, and nobody else uses the
// group meanwhile. Its errors are those of the group, which is then broken,
// those of Validate, and a *SpecError, the same on every rank.
func Run(ctx context.Context, g *collective.Group, s Spec) ([]Row, error) {
	if err := s.Validate(g.Size()); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
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
		b, err := newBuffers(g, &s, op, count, uint64(i), memory)
		if err != nil {
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

// buffers are the memory of one size on this rank.
type buffers struct {
	group *collective.Group
	spec  *Spec
	op    *operation
	count int

	given collective.Vector // this rank's input
	want  collective.Vector // its right result; a zero Vector when nobody looks
	work  collective.Vector // for the larger of input and result
	got   collective.Vector // a copy of the result, where the host does not reach it
}

// memory is what Alloc or Device make for the largest size.
func (s *Spec) memory(op *operation, ranks int) (p places, err error) {
	if s.Alloc == nil && s.Device == nil || len(s.Sizes) == 0 {
		return p, nil
	}
	spread := max(op.in(ranks), op.out(ranks))
	most := max(1, slices.Max(s.Sizes)/s.DType.Size()/spread) * spread
	if s.Device == nil {
		p.work, err = s.Alloc(s.DType, most)
		return p, err
	}
	if p.given, err = s.Device.Alloc(s.DType, most); err == nil {
		p.work, err = s.Device.Alloc(s.DType, most)
	}
	return p, err
}

func newBuffers(g *collective.Group, s *Spec, op *operation, count int, seed uint64, memory places) (*buffers, error) {
	b := &buffers{group: g, spec: s, op: op, count: count}
	n := g.Size()
	o := &oracle{seed: seed, ranks: n, root: s.Root, count: count, dtype: s.DType}
	var results *oracle
	if op.reduces {
		o.reduction, results = s.Reduction, o
	}
	var err error
	if b.given, err = allocate(s.DType, count*op.in(n)); err != nil {
		return nil, err
	}
	fill(b.given, nil, func(j int) int64 { return o.input(g.Rank(), j) })
	if s.Device != nil {
		remote := memory.given.Slice(0, b.given.Len())
		if err := s.Device.Write(remote, host(b.given)); err != nil {
			return nil, err
		}
		b.given = remote
	}
	if most := count * max(op.in(n), op.out(n)); memory.work.Len() >= most {
		b.work = memory.work.Slice(0, most)
	} else if b.work, err = allocate(s.DType, most); err != nil {
		return nil, err
	}
	if !s.Check {
		return b, nil
	}
	if b.want, err = allocate(s.DType, count*op.out(n)); err != nil {
		return nil, err
	}
	if s.Device != nil {
		if b.got, err = allocate(s.DType, b.want.Len()); err != nil {
			return nil, err
		}
	}
	for part := range op.out(n) {
		fill(b.want.Slice(part*count, (part+1)*count), results, func(j int) int64 { return op.want(o, g.Rank(), part, j) })
	}
	return b, nil
}

// outside is the trial whose input stays where it is.
func (b *buffers) outside() *trial {
	return &trial{buffers: b, dst: b.work.Slice(0, b.count*b.op.out(b.group.Size())), src: b.given}
}

// inside is the trial whose input and result share memory.
func (b *buffers) inside() *trial {
	dst, src := b.op.inside(b.group.Rank(), b.count, b.work)
	return &trial{buffers: b, dst: dst, src: src}
}

// A trial is one size in one placement.
type trial struct {
	*buffers
	dst, src collective.Vector
}

// measure warms up and makes the iterations.
func (t *trial) measure(ctx context.Context) (*Timing, error) {
	n := t.spec.Iterations
	warm := t.spec.Warmup
	if n == 0 {
		warm = max(warm, 2) // to know how long an iteration takes
	}
	shortest := math.Inf(1)
	for i := range warm {
		begin := time.Now()
		if _, err := t.once(ctx); err != nil {
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

// several makes n iterations and returns their microseconds, without and with a
// comparison of the result, and how many elements were wrong.
func (t *trial) several(ctx context.Context, n int) (times, read []float64, wrong int64, err error) {
	times, read = make([]float64, n), make([]float64, n)
	for i := range n {
		took, err := t.once(ctx)
		if err != nil {
			return nil, nil, 0, fmt.Errorf("iteration %d of %d: %w", i, n, err)
		}
		times[i] = microseconds(took)
		if t.spec.Check {
			begin := time.Now()
			got, err := t.result()
			if err != nil {
				return nil, nil, 0, err
			}
			wrong += countWrong(got, t.want)
			read[i] = microseconds(took + time.Since(begin))
		}
	}
	return times, read, wrong, nil
}

func microseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }

// missing is how many iterations are still to be made after those of mine, on
// every rank the same number.
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

// once is one iteration, and how long its call took here.
func (t *trial) once(ctx context.Context) (time.Duration, error) {
	if err := t.ready(ctx); err != nil {
		return 0, err
	}
	if err := t.group.Barrier(ctx); err != nil {
		return 0, err
	}
	begin := time.Now()
	err := t.op.call(ctx, t.group, t.spec, t.dst, t.src)
	return time.Since(begin), err
}

// adapt is how many iterations of so many seconds are enough.
func adapt(seconds float64, fill time.Duration) int {
	least, most := adaptMin, mostEver
	if fill == 0 {
		fill, most = adaptTime, adaptMax
	}
	n := math.Ceil(fill.Seconds() / max(seconds, 1e-9))
	return max(least, int(min(n, float64(most))))
}

// gather is every rank's numbers, in rank order. What the ranks know of a
// measurement travels by another operation than reductions, whose arithmetic
// may be what is wrong.
func gather(ctx context.Context, g *collective.Group, mine []float64) ([]float64, error) {
	every := make([]float64, len(mine)*g.Size())
	return every, collective.AllGather(ctx, g, every, mine)
}

// summarize makes a Timing of every rank's n times and wrong elements: of each
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

package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/bench"
	"github.com/ringtrain/ringtrain/scripts/peers/rounds"
)

// The names of some programs in file names. All others are peers.
const (
	ours          = "ringtrain"         // with ordinary memory
	oursShared    = "ringtrain-shared"  // with memory of cluster.Node.Alloc
	oursGarbage   = "ringtrain-garbage" // one size, while a goroutine makes garbage
	machineMemory = "memory"            // no allreduce: the speed of memory itself
	bareExchange  = "bare"              // no library: two processes exchange and add vectors
)

// programs have titles, in the order of the columns. Others come last.
var programs = rounds.Programs{
	{ours, "ringtrain"},
	{oursShared, "ringtrain, Node.Alloc"},
	{"ringtrain-tls", "ringtrain, TLS"},
	{"gloo", "Gloo"},
	{"openmpi", "Open MPI"},
}

// A result has all rounds of one number of ranks.
type result struct {
	ranks   int
	rounds  []int // numbers of the rounds
	sizes   []int
	columns []column
	garbage []bench.Record // for each round; empty if not measured
	memory  []bench.Memory // the same
	bare    column         // has no rounds if not measured
}

// A column has the figures of one program.
type column struct {
	program, transport string
	rounds             []int
	cells              []cell // for each size
}

// A cell has the figures of one program and size: microseconds for each round.
type cell struct{ times, means, p99s, reads []float64 }

func timesOf(c cell) []float64 { return c.times }
func readsOf(c cell) []float64 { return c.reads }

// summarize makes a result of every number of ranks. All programs must have
// measured the same sizes in the same rounds.
func summarize(all []measurement) ([]result, error) {
	var results []result
	for len(all) > 0 {
		n := slices.IndexFunc(all, func(m measurement) bool { return m.ranks != all[0].ranks })
		if n < 0 {
			n = len(all)
		}
		r := result{ranks: all[0].ranks}
		for _, m := range all[:n] {
			if err := r.add(m); err != nil {
				return nil, fmt.Errorf("%d ranks, round %d, %s: %w", m.ranks, m.round, m.program, err)
			}
		}
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("%d ranks: %w", r.ranks, err)
		}
		results, all = append(results, r), all[n:]
	}
	if results == nil {
		return nil, fmt.Errorf("there are no files")
	}
	return results, nil
}

// add adds one measurement.
func (r *result) add(m measurement) error {
	switch m.program {
	case machineMemory:
		r.memory = append(r.memory, m.memory)
		return nil
	case oursGarbage:
		if len(m.records) != 1 || len(r.garbage) > 0 && m.records[0].Size != r.garbage[0].Size {
			return fmt.Errorf("it must have one size, the same in each round")
		}
		r.garbage = append(r.garbage, m.records[0])
		return nil
	case bareExchange:
		if len(m.records) == 0 {
			return nil
		}
		if r.bare.cells == nil {
			r.bare.cells = make([]cell, len(m.records))
		}
		if len(r.bare.cells) != len(m.records) {
			return fmt.Errorf("it must have the same sizes in each round")
		}
		r.bare.add(m)
		return nil
	}
	sizes := make([]int, len(m.records))
	for j, x := range m.records {
		sizes[j] = x.Size
	}
	if r.sizes == nil {
		r.sizes = sizes
	}
	if !slices.Equal(sizes, r.sizes) {
		return fmt.Errorf("it has the sizes %v, others %v", sizes, r.sizes)
	}
	i := r.find(m.program)
	if i < 0 {
		r.columns = append(r.columns, column{m.program, m.records[0].Transport, nil, make([]cell, len(r.sizes))})
		slices.SortStableFunc(r.columns, func(a, b column) int { return programs.Index(a.program) - programs.Index(b.program) })
		i = r.find(m.program)
	}
	r.columns[i].add(m)
	return nil
}

// add adds one round, with a record for each cell.
func (c *column) add(m measurement) {
	c.rounds = append(c.rounds, m.round)
	for j, x := range m.records {
		c := &c.cells[j]
		c.times, c.means, c.p99s, c.reads = append(c.times, x.Time), append(c.means, x.Mean), append(c.p99s, x.P99), append(c.reads, x.Read)
	}
}

// find returns the index of a program's column, or -1.
func (r *result) find(program string) int {
	return slices.IndexFunc(r.columns, func(c column) bool { return c.program == program })
}

// check returns an error if measurements are missing.
func (r *result) check() error {
	base := slices.IndexFunc(r.columns, column.isBase)
	if base < 0 {
		return fmt.Errorf("%s is missing", ours)
	}
	r.rounds = r.columns[base].rounds
	for _, c := range r.columns {
		if !slices.Equal(c.rounds, r.rounds) {
			return fmt.Errorf("%s has the rounds %v, %s %v", r.columns[base].program, r.rounds, c.program, c.rounds)
		}
	}
	for program, n := range map[string]int{oursGarbage: len(r.garbage), machineMemory: len(r.memory), bareExchange: len(r.bare.rounds)} {
		if n != 0 && n != len(r.rounds) {
			return fmt.Errorf("%s has %d rounds, %s %d", program, n, r.columns[base].program, len(r.rounds))
		}
	}
	return nil
}

// isBase reports whether peers are compared with this program of ours. They are not
// compared with TLS, because they have none.
func (c column) isBase() bool { return c.program == ours || c.program == oursShared }

func (c column) isPeer() bool { return !strings.HasPrefix(c.program, ours) }

// those returns the columns for which a function holds.
func (r *result) those(is func(column) bool) []column {
	return slices.DeleteFunc(slices.Clone(r.columns), func(c column) bool { return !is(c) })
}

// A ratio compares peers with a program of ours.
type ratio struct {
	title string
	peers []column
	base  column
}

// ratios returns one ratio for each peer and each program of ours, and those of the best
// of several peers.
func (r *result) ratios() []ratio {
	var all []ratio
	peers := r.those(column.isPeer)
	for _, base := range r.those(column.isBase) {
		for _, c := range peers {
			all = append(all, ratio{programs.Title(c.program) + " / " + programs.Title(base.program), []column{c}, base})
		}
		if len(peers) > 1 {
			all = append(all, ratio{"best peer / " + programs.Title(base.program), peers, base})
		}
	}
	return all
}

// of returns the median over the rounds of the fastest peer's time divided by ours in
// the same round.
func (x ratio) of(size int, figures func(cell) []float64) float64 {
	mine := figures(x.base.cells[size])
	best := make([]float64, len(mine))
	for round := range best {
		best[round] = math.Inf(1)
		for _, c := range x.peers {
			best[round] = min(best[round], figures(c.cells[size])[round])
		}
	}
	return rounds.Ratio(best, mine)
}

// bareRatios returns the ratios to the bare exchange, of the best peer, if any, and of
// each program of ours. Only noise can make one less than 1.
func (r *result) bareRatios() []ratio {
	var all []ratio
	if peers := r.those(column.isPeer); len(peers) > 0 {
		all = append(all, ratio{"best peer / bare", peers, r.bare})
	}
	for _, c := range r.those(column.isBase) {
		all = append(all, ratio{programs.Title(c.program) + " / bare", []column{c}, r.bare})
	}
	return all
}

// below returns an error for each ratio of times that is lower than required.
func (r *result) below(least float64) []error {
	var slow []error
	for _, x := range r.ratios() {
		for i, size := range r.sizes {
			if got := x.of(i, timesOf); len(x.peers) == 1 && got < least {
				slow = append(slow, fmt.Errorf("%d ranks, %s: %s is %s, but must be at least %v", r.ranks, formatSize(size), x.title, formatRatio(got), least))
			}
		}
	}
	return slow
}

package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/schedule"
)

// How Tune measures.
const (
	tuneRounds = 5                     // rounds, in which every way has one turn
	tuneTurn   = 10 * time.Millisecond // length of a turn, unless one call takes longer
	tuneMost   = 50                    // maximum of calls in a turn
	tuneWhole  = 1 << 20               // bytes above which no rank receives the whole vectors of all
)

// tuneSegments are the sizes of messages to try.
var tuneSegments = []int{64 << 10, 256 << 10}

// A Way is one way to reduce vectors of one size, with its time.
type Way struct {
	Method    schedule.Method
	Segment   int     // maximum bytes of a message
	Measured  float64 // microseconds, median of the slowest rank
	Predicted float64 // microseconds, by the cost model
}

// A Tuned has the measurements of one size, the fastest way first.
type Tuned struct {
	Bytes int
	Ways  []Way
}

// Tune measures AllReduce of float32 over sizes in bytes, with all methods that the
// group may use. The methods take turns, so that a disturbance affects all of them.
// All ranks must call it with the same sizes, and must not use the group otherwise until
// it returns. They get the same result. Afterwards the group has no table. each gets
// every size; it may be nil. Errors are the group's.
func Tune(ctx context.Context, g *collective.Group, sizes []int, each func(Tuned)) ([]Tuned, error) {
	var all []Tuned
	for _, size := range sizes {
		t := &tuning{group: g, vector: make([]float32, max(1, size/4))}
		tuned, err := t.measure(ctx)
		if err != nil {
			return nil, fmt.Errorf("bench: tuning %d bytes: %w", size, err)
		}
		all = append(all, tuned)
		if each != nil {
			each(tuned)
		}
	}
	if err := g.Tune(ctx, nil); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	return all, nil
}

// TableOf returns the fastest ways as a table for groups of the given number of ranks.
func TableOf(ranks int, all []Tuned) *schedule.Table {
	t := &schedule.Table{Ranks: ranks}
	for _, tuned := range all {
		best := tuned.Ways[0]
		t.Entries = append(t.Entries, schedule.Entry{
			Bytes: tuned.Bytes, Method: best.Method, Segment: best.Segment,
			Measured: micro(best.Measured), Predicted: micro(best.Predicted),
		})
	}
	return t
}

func micro(us float64) time.Duration { return max(1, time.Duration(us*1e3)) }

// tuning measures one size.
type tuning struct {
	group  *collective.Group
	vector []float32
}

// measure gives all ways their turns, the same number on every rank.
func (t *tuning) measure(ctx context.Context) (Tuned, error) {
	ways := t.ways()
	times := make([][]float64, len(ways))
	calls := make([]int, len(ways))
	for round := range 1 + tuneRounds {
		for i, w := range ways {
			if err := t.group.Tune(ctx, schedule.Only(t.group.Size(), w.Method, w.Segment)); err != nil {
				return Tuned{}, err
			}
			took, err := t.turn(ctx, max(1, calls[i]))
			if err != nil {
				return Tuned{}, err
			}
			if round == 0 { // warms up, and finds out how many calls fill a turn
				calls[i] = int(min(tuneMost, float64(tuneTurn.Microseconds())/max(took[0], 1)))
				continue
			}
			times[i] = append(times[i], took...)
		}
	}
	s := t.group.Situation()
	for i := range ways {
		s.Table = schedule.Only(t.group.Size(), ways[i].Method, ways[i].Segment)
		ways[i].Measured = Median(times[i])
		ways[i].Predicted = float64(s.Predict(s.Plan(len(t.vector), 4, true), len(t.vector), 4).Nanoseconds()) / 1e3
	}
	slices.SortStableFunc(ways, func(a, b Way) int {
		switch {
		case a.Measured < b.Measured:
			return -1
		case a.Measured > b.Measured:
			return 1
		}
		return 0
	})
	return Tuned{Bytes: 4 * len(t.vector), Ways: ways}, nil
}

// ways returns the ways to try.
func (t *tuning) ways() []Way {
	var all []Way
	bytes := 4 * len(t.vector)
	s := t.group.Situation()
	for _, m := range s.Candidates() {
		segments := tuneSegments
		switch m {
		case schedule.OneShot, schedule.Bruck, schedule.Collected: // some rank receives the whole vectors of all
			if bytes > tuneWhole {
				continue
			}
			segments = segments[:1]
		case schedule.Shared: // no messages
			segments = segments[:1]
		}
		for i, segment := range segments {
			if i > 0 && bytes <= segments[i-1] { // there is only one message
				break
			}
			all = append(all, Way{Method: m, Segment: segment})
		}
	}
	return all
}

// turn makes calls one after another, and returns the time of each on the slowest rank,
// in microseconds.
func (t *tuning) turn(ctx context.Context, calls int) ([]float64, error) {
	mine := make([]float64, calls)
	for i := range mine {
		clear(t.vector)
		if err := t.group.Barrier(ctx); err != nil {
			return nil, err
		}
		begin := time.Now()
		if err := collective.AllReduce(ctx, t.group, t.vector, collective.Sum); err != nil {
			return nil, err
		}
		mine[i] = float64(time.Since(begin).Nanoseconds()) / 1e3
	}
	every, err := gather(ctx, t.group, mine)
	if err != nil {
		return nil, err
	}
	for i, x := range every {
		mine[i%calls] = max(mine[i%calls], x)
	}
	return mine, nil
}

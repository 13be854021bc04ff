package crew

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer/job/event"
)

// losses is a Display that keeps back what survivors say about a lost rank until
// the job has ended. All say the same, and the error of the job may say it, too;
// the user reads it once.
type losses struct {
	Display

	mu   sync.Mutex
	told []*event.Lost
}

// Emit is part of event.Sink.
func (l *losses) Emit(e event.Event) {
	lost, ok := e.(*event.Lost)
	if !ok {
		l.Display.Emit(e)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, lost)
}

// TellLost emits an event.Lost if err says that rank self has lost another rank.
func TellLost(to event.Sink, self int, err error) {
	var lost *collective.RankError
	if !errors.As(err, &lost) || lost.Rank == self {
		return
	}
	to.Emit(&event.Lost{
		Rank: lost.Rank, Node: lost.Node, SeenBy: self,
		Op: lost.Op.Kind.String(), Phase: lost.Phase, AfterMs: float64(lost.After.Microseconds()) / 1000, Error: lost.Err.Error(),
	})
}

// Quiet returns a Sink that drops events about lost ranks, for jobs whose error names
// the lost rank.
func Quiet(to event.Sink) event.Sink { return withoutLosses{to} }

type withoutLosses struct{ event.Sink }

// Emit is part of event.Sink.
func (w withoutLosses) Emit(e event.Event) {
	if _, lost := e.(*event.Lost); !lost {
		w.Sink.Emit(e)
	}
}

// lines is what there is to say at the end of a job besides its error: a line
// for each rank that was lost.
func (l *losses) lines(err error) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var worker *WorkerError
	failed := errors.As(err, &worker)
	byRank := map[int][]*event.Lost{}
	for _, e := range l.told {
		if failed && (worker.Said.Name == e.Node || strings.Contains(worker.Said.Error, "("+e.Node+")")) {
			continue // the error says it
		}
		byRank[e.Rank] = append(byRank[e.Rank], e)
	}
	var out []string
	for _, rank := range slices.Sorted(maps.Keys(byRank)) {
		out = append(out, lossText(byRank[rank]))
	}
	return out
}

// lossText is the word of all survivors about one rank, in the words of the one
// that needs the fewest: the others may add who told them.
func lossText(all []*event.Lost) string {
	first := slices.MinFunc(all, func(a, b *event.Lost) int {
		return cmp.Or(cmp.Compare(len(a.Error), len(b.Error)), cmp.Compare(a.SeenBy, b.SeenBy))
	})
	if len(all) == 1 {
		return first.String()
	}
	var ranks []string
	for _, e := range slices.SortedFunc(slices.Values(all), func(a, b *event.Lost) int { return cmp.Compare(a.SeenBy, b.SeenBy) }) {
		ranks = append(ranks, fmt.Sprint(e.SeenBy))
	}
	_, rest, _ := strings.Cut(first.String(), " lost ")
	return fmt.Sprintf("ranks %s lost %s", strings.Join(slices.Compact(ranks), ", "), rest)
}

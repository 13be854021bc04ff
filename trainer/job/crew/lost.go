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

// losses is a Display that holds events about lost ranks until the job has ended. All
// survivors report the same loss, and the job's error may name it too, so that the user
// reads it once.
type losses struct {
	Display

	mu   sync.Mutex
	kept []*event.Lost
}

// Emit is part of event.Sink.
func (l *losses) Emit(e event.Event) {
	lost, ok := e.(*event.Lost)
	if !ok {
		l.Display.Emit(e)
		return
	}
	switch {
	case lost.Again: // if it is not started again, the job's error names it
		return
	case lost.Left > 0: // the job continues
		l.Display.Emit(e)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept = append(l.kept, lost)
}

// TellLost emits an event.Lost if err is the loss of a rank other than self.
func TellLost(to event.Sink, self int, err error) {
	if lost := lossOf(self, err); lost != nil {
		to.Emit(lost)
	}
}

// TellServerLost is TellLost for a server that will be started again.
func TellServerLost(to event.Sink, self int, err error) {
	if lost := lossOf(self, err); lost != nil {
		lost.Again = true
		to.Emit(lost)
	}
}

// lossOf returns the event of the loss of a rank other than self, or nil if err is none.
func lossOf(self int, err error) *event.Lost {
	var lost *collective.RankError
	if !errors.As(err, &lost) || lost.Rank == self {
		return nil
	}
	rank := lost.Rank
	if rank < 0 { // a server, in a call of the workers alone
		rank = lost.Whole
	}
	var op string
	if lost.Op.Kind != 0 { // else it was noticed between calls
		op = lost.Op.Kind.String()
	}
	return &event.Lost{
		Rank: rank, Node: lost.Node, SeenBy: self,
		Op: op, Phase: lost.Phase, AfterMs: float64(lost.After.Microseconds()) / 1000, Error: lost.Err.Error(),
	}
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

// lines returns a line for each lost rank that err, the error of the job, does not name.
func (l *losses) lines(err error) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var worker *WorkerError
	failed := errors.As(err, &worker)
	byRank := map[int][]*event.Lost{}
	for _, e := range l.kept {
		if failed && (worker.Said.Name == e.Node || strings.Contains(worker.Said.Error, "("+e.Node+")")) {
			continue // err names it
		}
		byRank[e.Rank] = append(byRank[e.Rank], e)
	}
	var out []string
	for _, rank := range slices.Sorted(maps.Keys(byRank)) {
		out = append(out, lossText(byRank[rank]))
	}
	return out
}

// lossText combines the reports of all survivors about one rank. It uses the shortest
// error: the others may add which rank reported the loss to them.
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

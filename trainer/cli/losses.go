package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// losses is a display that keeps back what survivors say of a lost rank until
// the job has ended. All say the same, and the error of the job may say it, too;
// the user is to read it once. Events in JSON are not kept back.
type losses struct {
	display
	now bool // keep nothing back

	mu   sync.Mutex
	told []*lostEvent
}

func keepLosses(show display) *losses {
	s, ok := show.(*screen)
	return &losses{display: show, now: ok && s.json != nil}
}

func (l *losses) emit(event any) {
	e, ok := event.(*lostEvent)
	if !ok || l.now {
		l.display.emit(event)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = append(l.told, e)
}

// lines is what there is to say at the end of a job besides its error: a line
// for each rank that was lost.
func (l *losses) lines(err error) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var worker *workerError
	failed := errors.As(err, &worker)
	byRank := map[int][]*lostEvent{}
	for _, e := range l.told {
		if failed && (worker.said.Name == e.Node || strings.Contains(worker.said.Error, "("+e.Node+")")) {
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
func lossText(all []*lostEvent) string {
	first := slices.MinFunc(all, func(a, b *lostEvent) int {
		return cmp.Or(cmp.Compare(len(a.Error), len(b.Error)), cmp.Compare(a.SeenBy, b.SeenBy))
	})
	if len(all) == 1 {
		return first.String()
	}
	var ranks []string
	for _, e := range slices.SortedFunc(slices.Values(all), func(a, b *lostEvent) int { return cmp.Compare(a.SeenBy, b.SeenBy) }) {
		ranks = append(ranks, fmt.Sprint(e.SeenBy))
	}
	_, rest, _ := strings.Cut(first.String(), " lost ")
	return fmt.Sprintf("ranks %s lost %s", strings.Join(slices.Compact(ranks), ", "), rest)
}

// A workerError is what a worker said when it failed.
type workerError struct {
	worker string // as the launcher calls it
	said   failedEvent
}

// Error names the worker by both its names.
func (e *workerError) Error() string {
	return fmt.Sprintf("%s (%s): %s", e.worker, e.said.Name, e.said.Error)
}

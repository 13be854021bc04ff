package collective

import (
	"context"
	"fmt"
	"time"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// Tune makes the group's plans use measurements from now on. Every rank calls
// it, and all use the table of rank 0, even if it is nil. Under RingOrder, only
// methods that keep ring order are taken from the table, so no bits change. A
// Sub has its own table.
func (g *Group) Tune(ctx context.Context, t *schedule.Table) error {
	length := []int64{-1}
	if t != nil {
		length[0] = int64(len(t.Entries))
	}
	if err := Broadcast(ctx, g, length, 0); err != nil {
		return fmt.Errorf("collective: broadcasting the tuning table of rank 0: %w", err)
	}
	e := g.engine.Host()
	if length[0] < 0 {
		if e != nil {
			e.situation.Table = nil
		}
		return nil
	}
	words := make([]int64, 1+entryWords*length[0])
	if g.Rank() == 0 {
		words = putTable(words[:0], t)
	}
	if err := Broadcast(ctx, g, words, 0); err != nil {
		return fmt.Errorf("collective: broadcasting the tuning table of rank 0: %w", err)
	}
	if e != nil {
		e.situation.Table = getTable(words)
	}
	return nil
}

// entryWords is the number of words that carry one entry of a table.
const entryWords = 5

func putTable(words []int64, t *schedule.Table) []int64 {
	words = append(words, int64(t.Ranks))
	for _, e := range t.Entries {
		words = append(words, int64(e.Bytes), int64(e.Method), int64(e.Segment), int64(e.Measured), int64(e.Predicted))
	}
	return words
}

func getTable(words []int64) *schedule.Table {
	t := &schedule.Table{Ranks: int(words[0])}
	for w := words[1:]; len(w) > 0; w = w[entryWords:] {
		t.Entries = append(t.Entries, schedule.Entry{
			Bytes: int(w[0]), Method: schedule.Method(w[1]), Segment: int(w[2]), Measured: time.Duration(w[3]), Predicted: time.Duration(w[4]),
		})
	}
	return t
}

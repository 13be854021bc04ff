package query

import (
	"context"
	"sync"

	"github.com/ringtrain/ringtrain/collective"
)

// Ask puts a question to each of some members, all at once, and waits until all
// have answered or ctx ends. The answers are in the order of members, nil where
// none came.
func Ask(ctx context.Context, w Watcher, members []collective.Member, question []byte) [][]byte {
	answers := make([][]byte, len(members))
	var all sync.WaitGroup
	for i, m := range members {
		all.Go(func() {
			if text, err := w.Ask(ctx, m, question); err == nil {
				answers[i] = text
			}
		})
	}
	all.Wait()
	return answers
}

package query

import (
	"context"
	"sync"

	"github.com/ringtrain/ringtrain/collective"
)

// Ask sends a question to several members at once, and waits until all have
// answered or ctx ends. It returns the answers in the order of members, with nil
// for each member that did not answer.
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

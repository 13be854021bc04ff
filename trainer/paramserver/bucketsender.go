package paramserver

import (
	"context"
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
)

// A bucketSender sends the gradients of a worker during the backward pass: first the command
// of the step, and then each bucket as soon as it is complete. They leave in a goroutine of the
// group.
type bucketSender struct {
	exchange *exchange
	ctx      context.Context // of the step
	command  command
	grads    []float32

	words []int64            // the commands of all ranks
	works []*collective.Work // of the command, and of the buckets that have left
	err   error              // why a bucket could not leave
}

// final sends the buckets that are complete if gradients from lo on are. It is for
// nn.Pass.Final.
func (s *bucketSender) final(lo int) {
	x := s.exchange
	for b := max(len(s.works)-1, 0); b < len(x.buckets) && x.layout.bucket(b) >= lo; b++ {
		if b == 0 {
			words, own := commandWords(x.ranks, s.command)
			s.words = words
			s.works = append(s.works, x.group.AllGatherAsync(s.ctx, collective.Of(words), collective.Of(own)))
		}
		call, err := x.pushing(x.buckets[b], s.grads, everyone)
		if err != nil {
			s.err = err
			return
		}
		s.works = append(s.works, call.Start(s.ctx))
	}
}

// wait waits for a bucket, of which all have left, and for the command before the first.
func (s *bucketSender) wait(bucket int) error {
	if s.err != nil {
		return s.err
	}
	if bucket == 0 {
		if err := s.works[0].Wait(context.Background()); err != nil {
			return fmt.Errorf("exchanging commands: %w", err)
		}
		if _, err := s.exchange.commandsOf(s.words); err != nil {
			return err
		}
	}
	return s.works[bucket+1].Wait(context.Background())
}

// finish waits for all that has left. It returns when the context of the step ends, at the
// latest.
func (s *bucketSender) finish() {
	for _, w := range s.works {
		_ = w.Wait(context.Background()) // the step has returned the error
	}
}

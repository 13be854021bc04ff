package paramserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/trainer"
)

// A contribution is this worker's part in a step. That of a server which is no worker is the
// zero value.
type contribution struct {
	grads  []float32
	sender *bucketSender // has sent all buckets; nil: none has left
	// word returns the word of trainer.Agreement. With search, it names a parameter whose
	// gradient here is not finite.
	word func(search bool) []int64
}

// A notFiniteError is the error of a step in which the sum of all gradients is not finite.
type notFiniteError struct {
	step      int64
	parameter string
}

// Error names the parameter.
func (e *notFiniteError) Error() string {
	return fmt.Sprintf("paramserver: the summed gradient of %s in step %d is not finite: lower the learn rate", e.parameter, e.step+1)
}

// step takes a step that all ranks know the command of. The new values are then in x.pulled,
// unless no worker has rows. If the step fails before the update on some server, no share has
// changed.
func (x *exchange) step(ctx context.Context, c command, own contribution) (trainer.Report, error) {
	if err := x.sum(ctx, c, own); err != nil {
		return trainer.Report{}, err
	}
	report, err := x.agree(ctx, c, own)
	switch {
	case err != nil:
		return report, err
	case report.Weight == 0:
		return report, x.count(ctx, c)
	}
	if err := x.update(ctx, c, report.Weight); err != nil {
		return report, err
	}
	if err := x.pull(ctx, x.values(), everyone); err != nil {
		return report, fmt.Errorf("paramserver: pulling the values of step %d: %w", c.step+1, err)
	}
	return report, nil
}

// sum pushes the gradients of all workers, bucket by bucket. Servers add those of a bucket
// when they have come.
func (x *exchange) sum(ctx context.Context, c command, own contribution) error {
	for b, r := range x.buckets {
		var err error
		if own.sender != nil {
			err = own.sender.wait(b)
		} else {
			err = x.push(ctx, r, own.grads, everyone)
		}
		if err != nil {
			return fmt.Errorf("paramserver: pushing the gradients of step %d: %w", c.step+1, err)
		}
		if x.share == nil {
			continue
		}
		if err := x.share.fold(r[x.server()], x.copies); err != nil {
			return err
		}
	}
	return nil
}

// statusLen is the length of what a rank sends about a step in int64: a worker's word, and 1 +
// the index of a parameter whose sum on this server is not finite, or 0.
const statusLen = trainer.WordLen + 1

// agree tells all ranks what the step is, and whether the sums are finite. If they are not,
// either some worker's own gradient is the reason, or none; all workers then look.
func (x *exchange) agree(ctx context.Context, c command, own contribution) (trainer.Report, error) {
	report, found, err := x.status(ctx, c, own, false)
	if err != nil || found == 0 {
		return report, err
	}
	if found > int64(len(x.layout.Parameters)) {
		return report, errors.New("paramserver: a server names a parameter that does not exist: run the same version on every machine")
	}
	if report, _, err = x.status(ctx, c, own, true); err != nil {
		return report, err
	}
	return report, &notFiniteError{c.step, x.layout.Parameters[found-1].Name}
}

// status exchanges what all ranks know about a step. It returns what the servers have found.
func (x *exchange) status(ctx context.Context, c command, own contribution, search bool) (report trainer.Report, found int64, err error) {
	mine, all := make([]int64, statusLen), make([]int64, statusLen*x.group.Size())
	if own.word != nil {
		copy(mine, own.word(search))
	}
	if x.share != nil && !search {
		mine[trainer.WordLen] = x.share.notFinite()
	}
	if err := collective.AllGather(ctx, x.group, all, mine); err != nil {
		return report, 0, fmt.Errorf("paramserver: exchanging the status of step %d: %w", c.step+1, err)
	}
	var words []int64
	for rank := range x.group.Size() {
		status := all[rank*statusLen:][:statusLen]
		if rank < x.workers {
			words = append(words, status[:trainer.WordLen]...)
		}
		if slices.Contains(x.servers, rank) {
			found = max(found, status[trainer.WordLen])
		}
	}
	report, err = trainer.Outcome(words, x.group.View(), x.params)
	return report, found, err
}

// count takes a step in which no worker has rows.
func (x *exchange) count(ctx context.Context, c command) error {
	if x.share != nil {
		x.share.state.Step++
		if err := x.share.keepStep(); err != nil {
			return err
		}
	}
	if err := x.group.Barrier(ctx); err != nil { // no worker counts the step before all servers have
		return fmt.Errorf("paramserver: counting step %d: %w", c.step+1, err)
	}
	return nil
}

// update makes the update from the sums of gradients of this many rows. Servers first tell
// each other the norms of parameters that are cut.
func (x *exchange) update(ctx context.Context, c command, rows int) error {
	scale := float32(1)
	if !c.undivided {
		scale /= float32(rows)
	}
	if x.share != nil && x.share.cut() {
		x.share.backend.Scale(x.share.params.Grads, scale)
		scale = 1
	}
	if err := x.exchangeNorms(ctx, c); err != nil || x.share == nil {
		return err
	}
	begin := time.Now()
	x.share.update(scale)
	err := x.share.keepStep() // before a worker has the values
	x.updating = time.Since(begin)
	return err
}

// exchangeNorms gives every server the squared norms of all blocks of parameters that are
// cut. Without one it does nothing, on all ranks.
func (x *exchange) exchangeNorms(ctx context.Context, c command) error {
	counts := make([]int, x.group.Size())
	for i, s := range x.servers {
		counts[s] = blocksOf(x.layout, x.shares[i])
	}
	all := make([]float32, sum(counts))
	if len(all) == 0 {
		return nil
	}
	var own []float32
	if x.share != nil {
		own = x.share.blockNorms()
	}
	if err := x.group.AllGatherV(ctx, collective.Of(all), collective.Of(own), counts); err != nil {
		return fmt.Errorf("paramserver: exchanging the norms of step %d: %w", c.step+1, err)
	}
	if x.share == nil {
		return nil
	}
	for i, s := range x.servers {
		x.share.setBlockNorms(x.shares[i], all[:counts[s]])
		all = all[counts[s]:]
	}
	return nil
}

func sum(counts []int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

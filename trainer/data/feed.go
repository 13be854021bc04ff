package data

import (
	"iter"

	"github.com/ringtrain/ringtrain/nn"
)

// A Stage copies rows of a set into the memory of a backend and returns them as a batch,
// which is valid until the next call. It reuses its memory for every batch. See
// [Images.Stage].
type Stage[B any] func(rows []int32) (B, error)

// An Order determines which rows a rank trains on in each step; see [Sampler.Step].
type Order interface {
	Step(step int) (rows []int32, global int)
}

// A Feed turns the rows of an Order, such as a Sampler, into batches for a model.
type Feed[B any] struct {
	from  Order
	stage Stage[B]
}

// NewFeed returns a Feed of the rows that order chooses. stage must have room for the rows
// of a step.
func NewFeed[B any](stage Stage[B], order Order) *Feed[B] {
	return &Feed[B]{from: order, stage: stage}
}

// Batch returns this rank's rows of a step. The batch is valid until the next call.
func (f *Feed[B]) Batch(step int) (B, error) {
	rows, _ := f.from.Step(step)
	return f.stage(rows)
}

// A Part is one rank's share of a set that all ranks evaluate together.
type Part[B any] struct {
	lo, hi int
	each   int
	stage  Stage[B]
}

// NewPart returns the share of a rank of a set with total rows, in batches of at most
// batch rows, for which stage must have room.
func NewPart[B any](stage Stage[B], total, rank, size, batch int) *Part[B] {
	lo, hi := Shard(total, rank, size)
	return &Part[B]{lo: lo, hi: hi, each: batch, stage: stage}
}

// All returns the batches of the share. Each is valid until the next one.
func (p *Part[B]) All() iter.Seq2[B, error] {
	return func(yield func(B, error) bool) {
		rows := make([]int32, 0, p.each)
		for lo := p.lo; lo < p.hi; lo += p.each {
			b, err := p.stage(Range(rows[:0], lo, min(lo+p.each, p.hi)))
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// Stage returns a Stage of at most rows images, for a model on b. X is (rows, features),
// the pixels divided by 255.
func (m *Images) Stage(rows int, b nn.Backend) Stage[nn.Batch] {
	return newImageStage(m, rows, b).batch
}

// An imageStage is the memory in which a batch is assembled.
type imageStage struct {
	images *Images
	x      *rowBuffer[float32]
	labels *rowBuffer[int32]
}

func newImageStage(images *Images, rows int, b nn.Backend) *imageStage {
	return &imageStage{images: images, x: newFloats(b, rows, images.Features()), labels: newInts(b, rows, 1)}
}

// of returns the batch of the first n rows in the stage.
func (s *imageStage) of(n int) nn.Batch {
	return nn.Batch{X: tensorOf(s.x.first(n), s.x.width), Labels: s.labels.first(n)}
}

func (s *imageStage) batch(rows []int32) (nn.Batch, error) {
	if err := s.images.Gather(rows, s.x.host, s.labels.host); err != nil {
		return nn.Batch{}, err
	}
	s.x.flush(len(rows))
	s.labels.flush(len(rows))
	return s.of(len(rows)), nil
}

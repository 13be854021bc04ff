package data

import (
	"iter"

	"github.com/ringtrain/ringtrain/nn"
)

// A Feed turns a Sampler's rows into batches for a model. It reuses memory of the model's
// backend for every batch.
type Feed struct {
	sampler *Sampler
	stage   stage
}

// NewFeed returns a Feed of batches of at most batch rows of images, chosen by sampler,
// for a model on b.
func NewFeed(images *Images, sampler *Sampler, batch int, b nn.Backend) *Feed {
	return &Feed{sampler: sampler, stage: newStage(images, batch, b)}
}

// Batch returns this rank's rows of a step. X is (rows, features), pixels divided by 255.
// The batch is valid until the next call.
func (f *Feed) Batch(step int) (nn.Batch, error) {
	rows, _ := f.sampler.Step(step)
	return f.stage.batch(rows)
}

// Part is one rank's share of a set that all ranks evaluate together.
type Part struct {
	lo, hi int
	each   int
	stage  stage
}

// NewPart returns the share of a rank, in batches of at most batch rows.
func NewPart(images *Images, rank, size, batch int, b nn.Backend) *Part {
	lo, hi := Shard(images.Rows, rank, size)
	return &Part{lo: lo, hi: hi, each: batch, stage: newStage(images, batch, b)}
}

// All returns the batches of the share. Each is valid until the next one.
func (p *Part) All() iter.Seq2[nn.Batch, error] {
	return func(yield func(nn.Batch, error) bool) {
		rows := make([]int32, 0, p.each)
		for lo := p.lo; lo < p.hi; lo += p.each {
			b, err := p.stage.batch(Range(rows[:0], lo, min(lo+p.each, p.hi)))
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// A stage is the memory in which a batch is assembled: the backend's memory if the host
// can write to it, otherwise a separate copy on the host.
type stage struct {
	images     *Images
	backend    nn.Backend
	x, labels  nn.Buffer
	hostX      []float32
	hostLabels []int32
	direct     bool // hostX and hostLabels alias x and labels
	features   int
}

func newStage(images *Images, rows int, b nn.Backend) stage {
	features := images.Features()
	s := stage{images: images, backend: b, features: features, x: b.Alloc(rows * features), labels: b.AllocInts(rows)}
	s.hostX, s.hostLabels = s.x.Float32s(), s.labels.Int32s()
	if s.direct = s.hostX != nil; !s.direct {
		s.hostX, s.hostLabels = make([]float32, rows*features), make([]int32, rows)
	}
	return s
}

func (s *stage) batch(rows []int32) (nn.Batch, error) {
	n := len(rows)
	if err := s.images.Gather(rows, s.hostX, s.hostLabels); err != nil {
		return nn.Batch{}, err
	}
	b := nn.Batch{X: nn.Tensor{Shape: []int{n, s.features}, Data: s.x.Slice(0, n*s.features)}, Labels: s.labels.Slice(0, n)}
	if !s.direct {
		s.backend.Copy(b.X.Data, s.hostX[:n*s.features])
		s.backend.CopyInts(b.Labels, s.hostLabels[:n])
	}
	return b, nil
}

package data

import (
	"encoding/binary"
	"slices"

	"github.com/ringtrain/ringtrain/nn"
)

// A Store holds rows in the memory of a backend, from which it queues a batch. order has
// the numbers of rows; the batch is that of the pace's step and has this many rows.
type Store[B any] interface {
	Gather(p nn.Pace, order nn.Buffer, rows int) B
}

// A Resident is a Feed whose rows are in the memory of a model's backend, so that a step
// can gather its own batch. Besides the rows it needs four bytes there for each of this
// rank's rows in an epoch.
type Resident[B any] struct {
	Feed[B]
	sampler *Sampler
	store   Store[B]
	backend nn.Backend
	order   nn.Buffer // this rank's rows of an epoch, step by step
	rows    []int32   // order on the host
	epoch   int       // the epoch in order; -1 before the first
}

// NewResident returns a Resident of the rows in store that sampler chooses. stage is for
// steps that do not gather their own batch.
func NewResident[B any](stage Stage[B], store Store[B], sampler *Sampler, b nn.Pacer) *Resident[B] {
	return &Resident[B]{Feed: *NewFeed(stage, sampler), sampler: sampler, store: store, backend: b, order: b.AllocInts(sampler.perEpoch()), epoch: -1}
}

// Rows returns the number of rows of this rank at a step, and of all ranks.
func (r *Resident[B]) Rows(step int) (mine, all int) { return r.sampler.count(step) }

// Seek loads the row order of a step's epoch. It returns the index of the step's first
// row, and the number of steps left in the epoch.
func (r *Resident[B]) Seek(step int) (first, steps int) {
	each := r.sampler.StepsPerEpoch()
	epoch, at := step/each, step%each
	if epoch != r.epoch {
		r.rows = r.rows[:0]
		for k := range each {
			rows, _ := r.sampler.Step(epoch*each + k)
			r.rows = append(r.rows, rows...)
		}
		r.backend.CopyInts(r.order.Slice(0, len(r.rows)), r.rows)
		r.epoch = epoch
	}
	for k := range at {
		mine, _ := r.sampler.count(epoch*each + k)
		first += mine
	}
	return first, each - at
}

// Gather queues a copy of rows rows at the position of p and returns the batch, which is
// valid until the next call.
func (r *Resident[B]) Gather(p nn.Pace, rows int) B { return r.store.Gather(p, r.order, rows) }

// Resident returns a Resident of images that sampler chooses, in steps of at most batch
// rows. The images are in the memory of b as bytes.
func (m *Images) Resident(batch int, sampler *Sampler, b nn.Pacer) *Resident[nn.Batch] {
	stage := newImageStage(m, batch, b)
	return NewResident(stage.batch, newImageStore(stage, b), sampler, b)
}

// An imageStore is all images in the memory of a backend.
type imageStore struct {
	stage          *imageStage // holds the batches
	pixels, labels nn.Buffer
}

func newImageStore(stage *imageStage, b nn.Backend) *imageStore {
	images := stage.images
	labels := make([]int32, images.Rows)
	for i, l := range images.Labels {
		labels[i] = int32(l)
	}
	s := &imageStore{stage: stage, pixels: b.AllocInts((len(images.Pixels) + 3) / 4), labels: b.AllocInts(images.Rows)}
	b.CopyInts(s.labels, labels)
	const some = 1 << 20 // bytes to pack at a time
	for lo := 0; lo < len(images.Pixels); lo += some {
		words := packed(images.Pixels[lo:min(lo+some, len(images.Pixels))])
		b.CopyInts(s.pixels.Slice(lo/4, lo/4+len(words)), words)
	}
	return s
}

// Gather is part of Store.
func (s *imageStore) Gather(p nn.Pace, order nn.Buffer, rows int) nn.Batch {
	b := s.stage.of(rows)
	p.GatherLabelled(b.X.Data, s.pixels, b.Labels, s.labels, order, s.stage.x.width, 255)
	return b
}

// packed returns the int32s that have these bytes in memory, padded with zeros.
func packed(bytes []byte) []int32 {
	words := make([]int32, 0, (len(bytes)+3)/4)
	for four := range slices.Chunk(bytes, 4) {
		var word [4]byte
		copy(word[:], four)
		words = append(words, int32(binary.NativeEndian.Uint32(word[:])))
	}
	return words
}

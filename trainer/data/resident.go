package data

import (
	"encoding/binary"
	"slices"

	"github.com/ringtrain/ringtrain/nn"
)

// A Resident is a Feed whose images are in the memory of a model's backend, as bytes, so
// that a step can gather its own batch. It needs the size of the images, plus four bytes
// for each of this rank's rows in an epoch.
type Resident struct {
	Feed
	backend        nn.Backend
	pixels, labels nn.Buffer // of all images
	order          nn.Buffer // this rank's rows of an epoch, step by step
	rows           []int32   // order on the host
	epoch          int       // the epoch in order; -1 before the first
}

// NewResident is NewFeed with the images in the memory of b.
func NewResident(images *Images, sampler *Sampler, batch int, b nn.Pacer) *Resident {
	labels := make([]int32, images.Rows)
	for i, l := range images.Labels {
		labels[i] = int32(l)
	}
	r := &Resident{
		Feed: *NewFeed(images, sampler, batch, b), backend: b, epoch: -1,
		pixels: b.AllocInts((len(images.Pixels) + 3) / 4), labels: b.AllocInts(images.Rows), order: b.AllocInts(sampler.perEpoch()),
	}
	b.CopyInts(r.labels, labels)
	const some = 1 << 20 // bytes to pack at a time
	for lo := 0; lo < len(images.Pixels); lo += some {
		words := packed(images.Pixels[lo:min(lo+some, len(images.Pixels))])
		b.CopyInts(r.pixels.Slice(lo/4, lo/4+len(words)), words)
	}
	return r
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

// Rows returns the number of rows of this rank at a step, and of all ranks.
func (r *Resident) Rows(step int) (mine, all int) { return r.sampler.count(step) }

// Seek loads the row order of a step's epoch. It returns the index of the step's first
// row, and the number of steps left in the epoch.
func (r *Resident) Seek(step int) (first, steps int) {
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
func (r *Resident) Gather(p nn.Pace, rows int) nn.Batch {
	s := &r.stage
	b := nn.Batch{X: nn.Tensor{Shape: []int{rows, s.features}, Data: s.x.Slice(0, rows*s.features)}, Labels: s.labels.Slice(0, rows)}
	p.GatherLabelled(b.X.Data, r.pixels, b.Labels, r.labels, r.order, s.features, 255)
	return b
}

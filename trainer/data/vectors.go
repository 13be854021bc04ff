package data

import (
	"encoding/binary"
	"hash"
	"math"

	"github.com/ringtrain/ringtrain/nn"
)

// Vectors are rows of numbers in memory, with what is to be learned from each: a class or
// a value. Neither is needed to predict.
type Vectors struct {
	Rows, Width int
	X           []float32 // [Rows, Width], row-major
	Labels      []int32   // [Rows], classes; or nil
	Values      []float32 // [Rows]; or nil
}

// Hash writes all rows to h.
func (v *Vectors) Hash(h hash.Hash) {
	word := make([]byte, 4)
	write := func(bits uint32) {
		binary.LittleEndian.PutUint32(word, bits)
		_, _ = h.Write(word) // a hash returns no error
	}
	write(uint32(v.Rows))
	for _, x := range v.X {
		write(math.Float32bits(x))
	}
	for _, l := range v.Labels {
		write(uint32(l))
	}
	for _, y := range v.Values {
		write(math.Float32bits(y))
	}
}

// Labelled returns a Stage of at most rows rows with their classes, for a model on b.
func (v *Vectors) Labelled(rows int, b nn.Backend) Stage[nn.Batch] {
	x, labels := newFloats(b, rows, v.Width), newInts(b, rows, 1)
	return func(rows []int32) (nn.Batch, error) {
		return nn.Batch{X: tensorOf(x.load(v.X, rows), v.Width), Labels: labels.load(v.Labels, rows)}, nil
	}
}

// Valued returns a Stage of at most rows rows with their values, for a model on b.
func (v *Vectors) Valued(rows int, b nn.Backend) Stage[nn.Targets] {
	x, values := newFloats(b, rows, v.Width), newFloats(b, rows, 1)
	return func(rows []int32) (nn.Targets, error) {
		return nn.Targets{X: tensorOf(x.load(v.X, rows), v.Width), Y: tensorOf(values.load(v.Values, rows), 1)}, nil
	}
}

// LabelledStore returns a Store of all rows with their classes, which gathers at most
// batch at a time.
func (v *Vectors) LabelledStore(batch int, b nn.Backend) Store[nn.Batch] {
	return &labelledStore{
		width: v.Width, x: stored(b.Alloc, b.Copy, v.X), labels: stored(b.AllocInts, b.CopyInts, v.Labels),
		batchX: b.Alloc(batch * v.Width), batchLabels: b.AllocInts(batch),
	}
}

// ValuedStore is LabelledStore with values.
func (v *Vectors) ValuedStore(batch int, b nn.Backend) Store[nn.Targets] {
	return &valuedStore{
		width: v.Width, x: stored(b.Alloc, b.Copy, v.X), values: stored(b.Alloc, b.Copy, v.Values),
		batchX: b.Alloc(batch * v.Width), batchValues: b.Alloc(batch),
	}
}

// A labelledStore is a Store of rows with classes.
type labelledStore struct {
	width                          int
	x, labels, batchX, batchLabels nn.Buffer
}

// Gather implements Store.
func (s *labelledStore) Gather(p nn.Pace, order nn.Buffer, rows int) nn.Batch {
	x, labels := s.batchX.Slice(0, rows*s.width), s.batchLabels.Slice(0, rows)
	p.Gather(x, s.x, order, s.width)
	p.Gather(labels, s.labels, order, 1)
	return nn.Batch{X: tensorOf(x, s.width), Labels: labels}
}

// A valuedStore is a Store of rows with values.
type valuedStore struct {
	width                          int
	x, values, batchX, batchValues nn.Buffer
}

// Gather implements Store.
func (s *valuedStore) Gather(p nn.Pace, order nn.Buffer, rows int) nn.Targets {
	x, values := s.batchX.Slice(0, rows*s.width), s.batchValues.Slice(0, rows)
	p.Gather(x, s.x, order, s.width)
	p.Gather(values, s.values, order, 1)
	return nn.Targets{X: tensorOf(x, s.width), Y: tensorOf(values, 1)}
}

// stored returns all values in the memory of a backend.
func stored[T any](alloc func(n int) nn.Buffer, set func(dst nn.Buffer, src []T), values []T) nn.Buffer {
	b := alloc(len(values))
	set(b, values)
	return b
}

// tensorOf returns a buffer as rows of one width.
func tensorOf(b nn.Buffer, width int) nn.Tensor {
	return nn.Tensor{Shape: []int{b.Len() / width, width}, Data: b}
}

// A rowBuffer is the memory in which rows of a batch are assembled: the backend's memory
// if the host can write to it, otherwise a separate copy on the host.
type rowBuffer[T any] struct {
	width  int
	memory nn.Buffer
	host   []T
	send   func(dst nn.Buffer, src []T) // nil if host is memory
}

func newFloats(b nn.Backend, rows, width int) *rowBuffer[float32] {
	memory := b.Alloc(rows * width)
	return newRowBuffer(memory, memory.Float32s(), width, b.Copy)
}

func newInts(b nn.Backend, rows, width int) *rowBuffer[int32] {
	memory := b.AllocInts(rows * width)
	return newRowBuffer(memory, memory.Int32s(), width, b.CopyInts)
}

func newRowBuffer[T any](memory nn.Buffer, host []T, width int, send func(dst nn.Buffer, src []T)) *rowBuffer[T] {
	r := &rowBuffer[T]{width: width, memory: memory, host: host}
	if host == nil {
		r.host, r.send = make([]T, memory.Len()), send
	}
	return r
}

// load returns these rows of all.
func (r *rowBuffer[T]) load(all []T, rows []int32) nn.Buffer {
	w := r.width
	for i, row := range rows {
		copy(r.host[i*w:(i+1)*w], all[int(row)*w:(int(row)+1)*w])
	}
	r.flush(len(rows))
	return r.first(len(rows))
}

// flush makes memory equal to host in the first rows.
func (r *rowBuffer[T]) flush(rows int) {
	if r.send != nil {
		r.send(r.first(rows), r.host[:rows*r.width])
	}
}

// first returns the memory of the first rows.
func (r *rowBuffer[T]) first(rows int) nn.Buffer { return r.memory.Slice(0, rows*r.width) }

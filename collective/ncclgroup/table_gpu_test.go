//go:build gpu && cgo && linux

package ncclgroup

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/ringtrain/ringtrain/collective"
)

// A trial is one call of the table: an operation on vectors of one type and size.
type trial struct {
	operation *operation
	dtype     collective.DType
	op        collective.Op // of reductions
	n         int           // elements of a piece
	inPlace   bool
}

func (t trial) String() string {
	text := fmt.Sprintf("%s of %d %v", t.operation.name, t.n, t.dtype)
	if t.operation.reduces {
		text = fmt.Sprintf("%s %v of %d %v", t.operation.name, t.op, t.n, t.dtype)
	}
	if t.inPlace {
		text += ", in place"
	}
	return text
}

// trials returns the table: every operation with every type and every reduction, and
// every operation in many sizes, with elements of 4 bytes and of 1.
func trials() []trial {
	const odd = 33
	many := 40_009 // more than the emulator moves at once
	if real() {
		many = 400_009 // more than NCCL sends by its protocols for small messages
	}
	var all []trial
	for i := range operations {
		o := &operations[i]
		if o.costly {
			all = append(all, trial{o, collective.Float32, collective.Sum, odd, false})
			continue
		}
		ops := []collective.Op{0}
		if o.reduces {
			ops = []collective.Op{collective.Sum, collective.Prod, collective.Min, collective.Max, collective.Mean}
		}
		for _, t := range []collective.DType{
			collective.Float32, collective.Float64, collective.Float16, collective.BFloat16,
			collective.Int32, collective.Int64, collective.Uint8,
		} {
			for _, op := range ops {
				all = append(all, trial{o, t, op, odd, false})
			}
			if o.inPlace {
				all = append(all, trial{o, t, ops[0], odd, true})
			}
		}
		for _, t := range []collective.DType{collective.Float32, collective.Uint8} {
			for _, n := range []int{0, 1, 1023, many} {
				all = append(all, trial{o, t, ops[0], n, false})
			}
		}
	}
	return all
}

// A tally counts the calls that NCCL receives.
type tally struct{ calls atomic.Int64 }

// on returns hardware that counts calls.
func (c *tally) on(g hardware) hardware {
	return &faulty{hardware: g, before: func() error { c.calls.Add(1); return nil }}
}

// table makes all calls of the table on this rank and returns their number. With
// byNCCL, NCCL must execute every call that it can; without it, none.
func (c *tally) table(ctx context.Context, w *workplace, g *collective.Group, byNCCL bool) (calls int, err error) {
	for _, t := range trials() {
		before := c.calls.Load()
		if err := t.run(ctx, w, g); err != nil {
			return calls, fmt.Errorf("%v, rank %d of %d: %w", t, g.Rank(), g.Size(), err)
		}
		if got, want := c.calls.Load() > before, byNCCL && t.carried(g.Size(), g.Rank()); got != want {
			return calls, fmt.Errorf("%v, rank %d of %d: NCCL was used: %v, want %v", t, g.Rank(), g.Size(), got, want)
		}
		calls++
	}
	return calls, nil
}

// carried reports whether NCCL can execute a rank's part. It has no exact mean of
// integers, and it is not called if there is nothing to move.
func (t trial) carried(size, rank int) bool {
	o := t.operation
	if o.between != nil && !o.between(size, rank) || o.reduces && t.op == collective.Mean && whole(t.dtype) {
		return false
	}
	return max(o.dst(size, rank, t.n), o.src(size, rank, t.n)) > 0
}

// operand returns a rank's input. Every type holds these numbers exactly, and also each
// sum, product and mean of up to four ranks.
func (t trial) operand(size, rank int) []float64 {
	s := make([]float64, t.operation.src(size, rank, t.n))
	for i := range s {
		k := (i*13 + i/17 + rank*57 + 1) % 251
		switch {
		case !t.operation.reduces:
			s[i] = float64(k)
		case t.op == collective.Prod:
			s[i] = float64(k%3 + 1)
		case t.dtype == collective.Uint8:
			s[i] = float64(k % 17)
		default:
			s[i] = float64(k%17 - 8)
		}
	}
	return s
}

// unwritten fills dst before the call.
const unwritten = 99

// run makes the call on device vectors and compares the result with the specification.
func (t trial) run(ctx context.Context, w *workplace, g *collective.Group) error {
	o, size, rank := t.operation, g.Size(), g.Rank()
	given := t.operand(size, rank)
	dst, src, err := t.vectors(w, size, rank, given)
	if err != nil {
		return err
	}
	if err := o.call(ctx, g, dst, src, t.op); err != nil {
		return err
	}
	want := o.want(t, size, rank)
	if want == nil { // the rank gets nothing
		want = given
		if !t.inPlace {
			want = unwrittens(dst.Len())
		}
	}
	if err := t.expect(w, dst, want, size); err != nil {
		return fmt.Errorf("dst: %w", err)
	}
	if t.inPlace || o.same {
		return nil
	}
	if err := t.expect(w, src, given, size); err != nil {
		return fmt.Errorf("src has changed: %w", err)
	}
	return nil
}

// vectors allocates the call's vectors in device memory.
func (t trial) vectors(w *workplace, size, rank int, given []float64) (dst, src collective.Vector, err error) {
	n := t.operation.dst(size, rank, t.n)
	switch {
	case t.operation.same:
		src, err = t.put(w, given)
		return src, src, err
	case !t.inPlace:
		if dst, err = t.put(w, unwrittens(n)); err != nil {
			return dst, src, err
		}
		src, err = t.put(w, given)
		return dst, src, err
	case n <= len(given): // dst is the rank's piece of src
		src, err = t.put(w, given)
		if n == len(given) {
			return src, src, err
		}
		return src.Slice(rank*n, (rank+1)*n), src, err
	default: // src is the rank's piece of dst
		all := unwrittens(n)
		copy(all[rank*len(given):], given)
		dst, err = t.put(w, all)
		return dst, dst.Slice(rank*len(given), (rank+1)*len(given)), err
	}
}

func unwrittens(n int) []float64 {
	s := make([]float64, n)
	for i := range s {
		s[i] = unwritten
	}
	return s
}

// put copies s to a device vector of the trial's type.
func (t trial) put(w *workplace, s []float64) (collective.Vector, error) {
	switch t.dtype {
	case collective.Float32:
		return put(w, as[float32](s))
	case collective.Float64:
		return put(w, s)
	case collective.Int32:
		return put(w, as[int32](s))
	case collective.Int64:
		return put(w, as[int64](s))
	case collective.Uint8:
		return put(w, as[uint8](s))
	}
	bits := make([]uint16, len(s))
	if err := collective.Round16(bits, as[float32](s), t.dtype); err != nil {
		return collective.Vector{}, err
	}
	return putHost(w, collective.Of16(bits, t.dtype))
}

// get is the reverse of put.
func (t trial) get(w *workplace, v collective.Vector) ([]float64, error) {
	switch t.dtype {
	case collective.Float32:
		return got[float32](w, v)
	case collective.Float64:
		return got[float64](w, v)
	case collective.Int32:
		return got[int32](w, v)
	case collective.Int64:
		return got[int64](w, v)
	case collective.Uint8:
		return got[uint8](w, v)
	}
	bits, wide := make([]uint16, v.Len()), make([]float32, v.Len())
	if err := getHost(w, collective.Of16(bits, t.dtype), v); err != nil {
		return nil, err
	}
	err := collective.Widen16(wide, bits, t.dtype)
	return widened(wide), err
}

func as[T collective.Element](s []float64) []T {
	out := make([]T, len(s))
	for i, x := range s {
		out[i] = T(x)
	}
	return out
}

func widened[T collective.Element](s []T) []float64 {
	out := make([]float64, len(s))
	for i, x := range s {
		out[i] = float64(x)
	}
	return out
}

func got[T collective.Element](w *workplace, v collective.Vector) ([]float64, error) {
	s, err := get[T](w, v)
	return widened(s), err
}

// expect compares a vector with the wanted numbers: bit for bit, except for means over
// a number of ranks that is not a power of two.
func (t trial) expect(w *workplace, v collective.Vector, want []float64, size int) error {
	have, err := t.get(w, v)
	if err != nil {
		return err
	}
	if len(have) != len(want) {
		return fmt.Errorf("%d elements, want %d", len(have), len(want))
	}
	tolerance := 0.
	if t.op == collective.Mean && !whole(t.dtype) && size&(size-1) != 0 {
		tolerance = 32 * epsilon[t.dtype]
	}
	for i, x := range have {
		if !(math.Abs(x-want[i]) <= tolerance) {
			return fmt.Errorf("element %d of %d is %v, want %v", i, len(want), x, want[i])
		}
	}
	return nil
}

// epsilon is the distance from 1 to the next number of a type.
var epsilon = map[collective.DType]float64{
	collective.Float64: 0x1p-52, collective.Float32: 0x1p-23, collective.Float16: 0x1p-10, collective.BFloat16: 0x1p-7,
}

// reduced returns the reduction of the operands of some ranks.
func (t trial) reduced(size int, ranks ...int) []float64 {
	out := t.operand(size, ranks[0])
	for _, r := range ranks[1:] {
		for i, x := range t.operand(size, r) {
			switch t.op {
			case collective.Prod:
				out[i] *= x
			case collective.Min:
				out[i] = min(out[i], x)
			case collective.Max:
				out[i] = max(out[i], x)
			default:
				out[i] += x
			}
		}
	}
	if t.op != collective.Mean {
		return out
	}
	for i := range out {
		out[i] /= float64(len(ranks))
		if whole(t.dtype) {
			out[i] = math.Trunc(out[i])
		}
	}
	return out
}

// everyone returns all ranks.
func everyone(size int) []int {
	all := make([]int, size)
	for r := range all {
		all[r] = r
	}
	return all
}

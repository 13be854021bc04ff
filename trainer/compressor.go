package trainer

import (
	"context"
	"fmt"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
)

// A compressor packs this rank's gradients, sums them over the ranks, and keeps what
// packing loses. The residual of a step replaces the previous one in commit, so a
// step that fails changes nothing.
type compressor struct {
	Compression
	group   *collective.Group
	backend nn.Backend
	params  *nn.Params
	cuts    []int // where buckets begin

	residual, next nn.Buffer // arenas: lost before this step, and in it

	dtype  collective.DType // of halves
	halves []uint16         // arena that 16-bit forms send from and receive into
	limit  float32          // the greatest magnitude whose sum over all ranks does not overflow
	packed [][]byte         // other forms: by bucket, what each rank sends, in rank order

	scratch []float32 // one stretch per rank
	cursors []int
}

// stretch is the number of elements packed or unpacked at a time. They fit the cache
// and are whole quantization blocks.
const stretch = 16 << 10

func newCompressor(c Compression, g *collective.Group, b nn.Backend, p *nn.Params, cuts []int) *compressor {
	n := p.Grads.Len()
	z := &compressor{Compression: c, group: g, backend: b, params: p, cuts: cuts, residual: b.Alloc(n), next: b.Alloc(n)}
	if t, ok := c.SumType(); ok {
		z.dtype, z.halves, z.limit = t, make([]uint16, n), greatest(t, g.Size())
		z.scratch = make([]float32, stretch)
		return z
	}
	for i := range cuts {
		z.packed = append(z.packed, make([]byte, g.Size()*c.packed(p, cuts[i], z.end(i))))
	}
	if c.Form == Int8 {
		z.scratch = make([]float32, g.Size()*min(stretch, n))
	}
	z.cursors = make([]int, g.Size())
	return z
}

// greatest is the greatest number of a 16-bit type that size ranks can sum without
// overflow.
func greatest(t collective.DType, size int) float32 {
	bits, x := []uint16{0x7bff}, []float32{0}
	if t == collective.BFloat16 {
		bits[0] = 0x7f7f
	}
	_ = collective.Widen16(x, bits, t) // fails only for other types
	most := x[0] / float32(size)
	_ = collective.Round16(bits, []float32{most}, t)
	if _ = collective.Widen16(x, bits, t); x[0] > most {
		bits[0]--
		_ = collective.Widen16(x, bits, t)
	}
	return x[0]
}

// end is where bucket i ends.
func (z *compressor) end(i int) int {
	if i == 0 {
		return z.params.Grads.Len()
	}
	return z.cuts[i-1]
}

// addResidual adds what earlier steps lost to elements lo to hi of the gradients.
func (z *compressor) addResidual(lo, hi int) {
	z.backend.Axpy(z.params.Grads.Slice(lo, hi), 1, z.residual.Slice(lo, hi))
}

// send packs bucket i and sends it.
func (z *compressor) send(ctx context.Context, i int) *collective.Work {
	lo, hi := z.cuts[i], z.end(i)
	x, rest := z.params.Grads.Float32s(), z.next.Float32s()
	if z.halves != nil {
		for at := lo; at < hi; at += stretch {
			to := min(at+stretch, hi)
			z.round(z.halves[at:to], rest[at:to], x[at:to])
		}
		return z.group.AllReduceAsync(ctx, collective.Of16(z.halves, z.dtype).Slice(lo, hi), collective.Sum)
	}
	mine := z.of(z.group.Rank(), i)
	if z.Form == TopK {
		keepLargest(mine, rest[lo:hi], x[lo:hi], z.kept(hi-lo))
	} else {
		b := mine
		for _, q := range within(z.params, lo, hi) {
			n, to := quantizedLen(q.Grads.Len()), q.Offset+q.Grads.Len()
			quantize(b[:n], rest[q.Offset:to], x[q.Offset:to])
			b = b[n:]
		}
	}
	return z.group.AllGatherAsync(ctx, collective.Of(z.packed[i]), collective.Of(mine))
}

// of returns what a rank sent of bucket i.
func (z *compressor) of(rank, i int) []byte {
	n := len(z.packed[i]) / z.group.Size()
	return z.packed[i][rank*n : (rank+1)*n]
}

// round sets h to x in 16 bits and rest to the rounding errors.
func (z *compressor) round(h []uint16, rest, x []float32) {
	cut := z.scratch[:len(x)]
	for i, v := range x {
		cut[i] = max(-z.limit, min(v, z.limit))
	}
	_ = collective.Round16(h, cut, z.dtype) // fails only if lengths or types differ
	_ = collective.Widen16(cut, h, z.dtype)
	for i, v := range x {
		rest[i] = v - cut[i]
	}
}

// receive sets the gradients of all buckets to the sum of what the ranks sent. All of
// it has arrived.
func (z *compressor) receive() error {
	grads := z.params.Grads.Float32s()
	if z.halves != nil {
		return collective.Widen16(grads, z.halves, z.dtype)
	}
	operands := make([][]byte, z.group.Size())
	for i, lo := range z.cuts {
		for r := range operands {
			operands[r] = z.of(r, i)
		}
		if z.Form == TopK {
			if err := sumEntries(grads[lo:z.end(i)], lo, operands, z.cursors); err != nil {
				return err
			}
			continue
		}
		at := 0
		for _, q := range within(z.params, lo, z.end(i)) {
			n := q.Grads.Len()
			if err := z.sumQuantized(grads[q.Offset:q.Offset+n], q.Offset, operands, at); err != nil {
				return err
			}
			at += quantizedLen(n)
		}
	}
	return nil
}

// sumQuantized sets dst, a parameter at an offset of the arena, to the sum of what
// the ranks sent of it, from byte from of each operand.
func (z *compressor) sumQuantized(dst []float32, offset int, operands [][]byte, from int) error {
	vectors := make([]collective.Vector, len(operands))
	per := len(z.scratch) / len(operands)
	for lo := 0; lo < len(dst); lo += stretch {
		n := min(stretch, len(dst)-lo)
		for r, b := range operands {
			x := z.scratch[r*per:][:n]
			dequantize(x, b[from+quantizedLen(lo):])
			vectors[r] = collective.Of(x).At(offset + lo)
		}
		if err := collective.FoldLocal(collective.Sum, collective.Of(dst[lo:lo+n]).At(offset+lo), vectors); err != nil {
			return err
		}
	}
	return nil
}

// commit ends a step that succeeded: its losses are added to the next step.
func (z *compressor) commit() {
	z.residual, z.next = z.next, z.residual
}

// sent is the payload in bytes that this rank sends per step.
func (z *compressor) sent() int {
	n, size, situation := 0, z.group.Size(), z.group.Situation()
	for i, lo := range z.cuts {
		if z.halves != nil {
			v := collective.Of16(z.halves, z.dtype).Slice(lo, z.end(i))
			n += z.group.PlanAllReduce(v, collective.Sum).Sent(size, v.Bytes())
		} else {
			n += situation.Gathered(len(z.packed[i]) / size)
		}
	}
	return n
}

// collect returns the residuals of all ranks on rank 0, if rank 0 wants them.
func (z *compressor) collect(ctx context.Context, wanted bool) (residuals [][]float32, err error) {
	if wanted, err = agreeWanted(ctx, z.group, wanted); err != nil {
		return nil, fmt.Errorf("trainer: agreeing on a snapshot: %w", err)
	}
	if !wanted {
		return nil, nil
	}
	if residuals, err = gatherArenas(ctx, z.group, z.residual.Float32s()); err != nil {
		return nil, fmt.Errorf("trainer: gathering what compression has kept back: %w", err)
	}
	return residuals, nil
}

// restore sends each rank its residual from rank 0. Residuals of a job with another
// number of ranks are ignored.
func (z *compressor) restore(ctx context.Context, saved [][]float32) error {
	n, size := z.residual.Len(), z.group.Size()
	word := []int64{int64(len(saved))}
	for r, x := range saved {
		if len(x) != n {
			return fmt.Errorf("trainer: the saved residual of rank %d has %d elements, this model's has %d", r, len(x), n)
		}
	}
	if err := collective.Broadcast(ctx, z.group, word, 0); err != nil {
		return fmt.Errorf("trainer: agreeing on what compression had kept back: %w", err)
	}
	if word[0] != int64(size) {
		return nil
	}
	if err := scatterArenas(ctx, z.group, z.residual.Float32s(), saved); err != nil {
		return fmt.Errorf("trainer: scattering what compression had kept back: %w", err)
	}
	return nil
}

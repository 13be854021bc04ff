package trainer

import (
	"context"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
)

// A rowExchange sums the gradients of tables over the ranks. It knows how many rows each
// rank has touched, so all ranks choose the same form for a table: the whole gradient, or
// rows, which every rank sends to all others and folds itself.
//
// The numbers of rows are known after the backward pass. So a table waits for them only if
// it left as rows in the step before, or would have. Otherwise it leaves in a bucket.
type rowExchange struct {
	group   *collective.Group
	grads   nn.Buffer // arena, in host memory
	tables  []*nn.Param
	adjoins []bool // the parameter before the table is a table, too
	form    Sparse

	waits    []bool // by table: it waits in this step; after choose, in the next
	asRows   []bool // by table: its gradient leaves as rows in this step
	whole    []bool // by table: it has waited, and leaves whole
	sent     int    // payload of this step in bytes
	calls    int    // of this step
	packed   []float32
	gathered []float32   // what all ranks packed, in rank order
	counts   []int       // its elements, by rank
	rests    [][]float32 // what fold has not used yet, by rank
	pieces   []rowPiece  // of a table, by rank
}

func newRowExchange(g *collective.Group, p *nn.Params, form Sparse) *rowExchange {
	n := g.Size()
	x := &rowExchange{group: g, grads: p.Grads, form: form, counts: make([]int, n), rests: make([][]float32, n), pieces: make([]rowPiece, n)}
	for i, q := range p.List {
		if form.applies(q) {
			x.tables = append(x.tables, q)
			x.adjoins = append(x.adjoins, i > 0 && form.applies(p.List[i-1]))
			x.waits = append(x.waits, true)
		}
	}
	x.asRows, x.whole = make([]bool, len(x.tables)), make([]bool, len(x.tables))
	return x
}

// mark sets waits for the buckets whose tables wait in this step. tables says which buckets
// are tables, from the last.
func (x *rowExchange) mark(waits, tables []bool) {
	t := len(x.tables)
	for i, table := range tables {
		if waits[i] = table; table {
			t--
			waits[i] = x.waits[t]
		}
	}
}

// count sets n to the number of rows of each table that this rank has touched.
func (x *rowExchange) count(n []int64) {
	for t, q := range x.tables {
		n[t] = int64(q.Touched.Len())
	}
}

// sum sets the gradients of the tables that wait to their sums over the ranks. touched
// returns what count set on a rank.
func (x *rowExchange) sum(ctx context.Context, touched func(rank int) []int64) error {
	x.choose(touched)
	if err := x.sumWhole(ctx); err != nil {
		return err
	}
	return x.sumRows(ctx, touched)
}

// choose sets asRows and whole, counts to what each rank will send, and waits for the next
// step.
func (x *rowExchange) choose(touched func(rank int) []int64) {
	x.sent, x.calls = 0, 0
	clear(x.counts)
	for t, q := range x.tables {
		sum := 0
		for r := range x.counts {
			sum += int(touched(r)[t])
		}
		fewer := x.form == SparseOn || FewerAsRows(sum, q.Shape[0], widthOf(q))
		x.asRows[t], x.whole[t], x.waits[t] = x.waits[t] && fewer, x.waits[t] && !fewer, fewer
		for r := range x.counts {
			if x.asRows[t] {
				x.counts[r] += int(touched(r)[t]) * (1 + widthOf(q))
			}
		}
	}
}

// sumWhole sums the tables that leave whole. Neighbours leave in one call.
func (x *rowExchange) sumWhole(ctx context.Context) error {
	for t := 0; t < len(x.tables); t++ {
		if !x.whole[t] {
			continue
		}
		from := x.tables[t].Offset
		for t+1 < len(x.tables) && x.adjoins[t+1] && x.whole[t+1] {
			t++
		}
		v := Operand(x.grads).Slice(from, x.tables[t].Offset+x.tables[t].Grads.Len())
		if err := x.group.AllReduce(ctx, v, collective.Sum); err != nil {
			return err
		}
		x.calls++
		x.sent += x.group.PlanAllReduce(v, collective.Sum).Sent(x.group.Size(), v.Bytes())
	}
	return nil
}

// sumRows sums the tables that leave as rows.
func (x *rowExchange) sumRows(ctx context.Context, touched func(rank int) []int64) error {
	total := 0
	for _, n := range x.counts {
		total += n
	}
	if total == 0 {
		return nil
	}
	x.packed = x.packed[:0]
	for t, q := range x.tables {
		if x.asRows[t] {
			x.packed = packRows(x.packed, q)
		}
	}
	if total > len(x.gathered) {
		x.gathered = make([]float32, max(total, 2*len(x.gathered)))
	}
	if err := x.group.AllGatherV(ctx, collective.Of(x.gathered[:total]), collective.Of(x.packed), x.counts); err != nil {
		return err
	}
	x.calls++
	x.sent += (x.group.Size() - 1) * 4 * len(x.packed)
	return x.fold(touched)
}

// fold sets the gradients of the tables that left as rows to the sums of what all ranks
// packed.
func (x *rowExchange) fold(touched func(rank int) []int64) error {
	rest := x.gathered
	for r, n := range x.counts {
		x.rests[r], rest = rest[:n], rest[n:]
	}
	for t, q := range x.tables {
		if !x.asRows[t] {
			continue
		}
		for r, b := range x.rests {
			rows := int(touched(r)[t])
			end := rows * (1 + widthOf(q))
			x.pieces[r], x.rests[r] = rowPiece{b[:rows], b[rows:end]}, b[end:]
		}
		if err := foldRows(x.grads.Float32s(), q, x.pieces); err != nil {
			return err
		}
	}
	return nil
}

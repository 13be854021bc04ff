package trainer

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn"
)

// awkward are gradients whose sums depend on their order, and zeros of both signs.
var awkward = []float32{0, float32(math.Copysign(0, -1)), 1, -1, 1e8, -1e8, .1, 1e-30, math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32}

// aTable returns a table at an offset of an arena of gradients.
func aTable(at, rows, width int) (arena []float32, q *nn.Param) {
	arena = make([]float32, at+rows*width)
	return arena, &nn.Param{Name: "E", Shape: []int{rows, width}, Offset: at, Grads: nn.Host(arena[at:]), Touched: nn.NewRowSet(rows)}
}

// Rows sum to the bits of whole tables, wherever a table lies in its arena, also across
// blocks, and whichever rows the ranks have touched.
func TestFoldRowsEqualsAllReduce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, rows := rapid.IntRange(1, 8).Draw(t, "size"), rapid.IntRange(1, 70).Draw(t, "rows")
		width := rapid.SampledFrom([]int{1, 3, 96, 5000}).Draw(t, "width")
		at := 16 * rapid.IntRange(0, 600).Draw(t, "offset")
		whole, pieces := make([]collective.Vector, size), make([]rowPiece, size)
		for r := range size {
			arena, q := aTable(at, rows, width)
			q.Touched.Add(rapid.SliceOfDistinct(rapid.Int32Range(0, int32(rows-1)), rapid.ID[int32]).Draw(t, "touched"))
			value := rapid.IntRange(0, len(awkward)-1).Draw(t, "value")
			for row := range q.Touched.All() {
				for i := range width {
					arena[at+row*width+i] = awkward[(value+row+i*(r+1))%len(awkward)]
				}
			}
			whole[r] = collective.Of(arena).At(0)
			b, n := packRows(nil, q), q.Touched.Len()
			require.Len(t, b, n*(1+width))
			pieces[r] = rowPiece{b[:n], b[n:]}
		}
		want := make([]float32, at+rows*width)
		require.NoError(t, collective.FoldLocal(collective.Sum, collective.Of(want), whole))
		got, q := aTable(at, rows, width)
		copy(got, collective.Elements[float32](whole[0])) // a rank's own gradients
		require.NoError(t, foldRows(got, q, pieces))
		for i := range want {
			if math.Float32bits(want[i]) != math.Float32bits(got[i]) {
				t.Fatalf("element %d of the arena: want %v with sign %v, got %v", i, want[i], math.Signbit(float64(want[i])), got[i])
			}
		}
	})
}

// Rows from elsewhere never reach other memory.
func TestFoldRowsRefuses(t *testing.T) {
	arena, q := aTable(16, 4, 2)
	piece := func(rows ...uint32) rowPiece {
		p := rowPiece{values: make([]float32, 2*len(rows))}
		for _, row := range rows {
			p.numbers = append(p.numbers, math.Float32frombits(row))
		}
		return p
	}
	require.NoError(t, foldRows(arena, q, []rowPiece{piece(0, 3), piece(3), piece()}))
	for _, bad := range []rowPiece{piece(4), piece(1, 1), piece(2, 0), piece(math.MaxUint32)} {
		err := foldRows(arena, q, []rowPiece{piece(0), bad})
		require.ErrorContains(t, err, "trainer: rank 1 sent row ")
		require.ErrorContains(t, err, " of E, but must send rows in order, up to 3: run the same version on every machine")
	}
}

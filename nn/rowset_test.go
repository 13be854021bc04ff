package nn_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/nn"
)

// A RowSet is what a map of rows is.
func TestRowSetIsASet(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rows := rapid.IntRange(1, 200).Draw(rt, "rows")
		s, want := nn.NewRowSet(rows), map[int]bool{}
		rt.Repeat(map[string]func(*rapid.T){
			"Add": func(rt *rapid.T) {
				added := rapid.SliceOf(rapid.Int32Range(0, int32(rows-1))).Draw(rt, "added")
				s.Add(added)
				for _, r := range added {
					want[int(r)] = true
				}
			},
			"AddAll": func(*rapid.T) {
				s.AddAll()
				for r := range rows {
					want[r] = true
				}
			},
			"Clear": func(*rapid.T) {
				s.Clear()
				clear(want)
			},
			"": func(rt *rapid.T) {
				got := slices.Collect(s.All())
				require.Equal(rt, len(want), s.Len())
				require.Len(rt, got, len(want))
				require.True(rt, slices.IsSorted(got))
				for _, r := range got {
					require.True(rt, want[r], "row %d", r)
				}
			},
		})
	})
}

func TestRowSetStopsEarly(t *testing.T) {
	s := nn.NewRowSet(100)
	s.Add([]int32{70, 3, 5})
	for r := range s.All() {
		require.Equal(t, 3, r)
		break
	}
}

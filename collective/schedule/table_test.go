package schedule

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A size just between two entries, by ratio, belongs to the smaller on every processor.
// Logarithms would let rounding decide.
func TestSizeBetweenTwoEntries(t *testing.T) {
	for small := 1; small < 1<<24; small *= 3 {
		for _, ratio := range []int{2, 3, 5, 7, 12} {
			table := &Table{Ranks: 2, Entries: []Entry{{Bytes: small}, {Bytes: small * ratio * ratio}}}
			found, ok := table.find(2, small*ratio)
			require.True(t, ok)
			require.Equal(t, small, found.Bytes, "%d bytes", small*ratio)
			found, _ = table.find(2, small*ratio+1)
			require.Equal(t, small*ratio*ratio, found.Bytes, "%d bytes", small*ratio+1)
		}
	}
}

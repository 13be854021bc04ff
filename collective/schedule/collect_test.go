package schedule_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/schedule"
)

// Every rank but 0 is a child of its parent. The ranges of the children follow each
// other without gaps, from the rank after the parent to the parent's Through.
func TestCollected(t *testing.T) {
	for size := 1; size <= 70; size++ {
		parents := 0
		for r := range size {
			next := r + 1
			for i := range schedule.Children(r, size) {
				child := r + 1<<i
				require.Equal(t, next, child, "%d of %d", r, size)
				require.Equal(t, r, schedule.Parent(child))
				next = schedule.Through(child, size)
				parents++
			}
			require.Equal(t, schedule.Through(r, size), next, "%d of %d", r, size)
		}
		require.Equal(t, size-1, parents)
		require.Equal(t, size, schedule.Through(0, size))
		require.Equal(t, -1, schedule.Parent(0))
	}
}

package job

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// The plan names every bucket. Consecutive ones with the same plan are named together.
func TestPlanOfBuckets(t *testing.T) {
	text := func(n int) string {
		if n < 100 {
			return "one-shot"
		}
		return fmt.Sprintf("ring %d", n/1000)
	}
	for want, lens := range map[string][]int{
		"one-shot": {50},
		"ring 1 (buckets 1 to 2 of 2, 4040 bytes)":                                                                         {1010, 1010},
		"ring 1 (buckets 1 to 3 of 4, 4000 to 4080 bytes); one-shot (bucket 4 of 4, 40 bytes)":                             {1000, 1020, 1001, 10},
		"ring 2 (bucket 1 of 4, 8000 bytes); ring 1 (buckets 2 to 3 of 4, 4000 bytes); ring 2 (bucket 4 of 4, 8004 bytes)": {2000, 1000, 1000, 2001},
	} {
		require.Equal(t, want, planOfBuckets(lens, text))
	}
}

package data

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A Tally counts values of texts over several tables. Missing ones and numbers are none.
func TestTally(t *testing.T) {
	train := parseTable(t, "plan,n,kind\nbasic,1,a\npro,2,b\nNA,3,a\n")
	var columns []Column
	for i := range train.Columns {
		c, err := train.Fit(i, Range(nil, 0, 3))
		require.NoError(t, err)
		columns = append(columns, c)
	}
	y := NewTally(columns)
	y.Add(train, Range(nil, 0, 3))
	require.Empty(t, y.Warnings())
	y.Add(parseTable(t, "kind,plan,n\na,gold,100\nb,,7\nc,NA,8\nx,pro,9\n"), []int32{0, 1, 2})
	y.Add(parseTable(t, "plan\nsilver\n"), []int32{0})
	require.Equal(t, []string{
		`column "plan": 2 of 4 values did not occur in the training rows`,
		`column "kind": 1 of 6 values did not occur in the training rows`,
	}, y.Warnings())
}

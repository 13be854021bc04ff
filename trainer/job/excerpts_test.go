package job

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Long descriptions are shown from shortly before their first difference.
func TestExcerpts(t *testing.T) {
	long := strings.Repeat("0123456789", 10)
	for _, c := range []struct{ a, b, fromA, fromB string }{
		{"10", "11", "10", "11"},
		{"", "x", "", "x"},
		{long + `["no"]`, long + `["A"]`, `...123456789["no"]`, `...123456789["A"]`},
		{"a" + long, "b" + long, "a" + long[:59] + "...", "b" + long[:59] + "..."},
		{"short", "short and " + long, "short", "short and " + long[:50] + "..."},
	} {
		fromA, fromB := excerpts(c.a, c.b)
		if strings.HasPrefix(c.fromA, "...") {
			require.True(t, strings.HasPrefix(fromA, "...") && strings.HasSuffix(fromA, c.fromA[3:]), fromA)
			require.True(t, strings.HasPrefix(fromB, "...") && strings.HasSuffix(fromB, c.fromB[3:]), fromB)
			continue
		}
		require.Equal(t, c.fromA, fromA)
		require.Equal(t, c.fromB, fromB)
	}
}

package bench

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestGrid(t *testing.T) {
	for _, c := range []struct {
		name     string
		grid     grid
		text     string
		markdown string
	}{
		{"no rows", grid{head: []string{"system", "ms"}}, "system  ms\n", "| system | ms |\n| ------ | -: |\n"},
		{"one row, wider than the head", grid{head: []string{"a", "b"}, rows: [][]string{{"ring", "12.50"}}},
			"a         b\nring  12.50\n",
			"| a    |     b |\n| ---- | ----: |\n| ring | 12.50 |\n"},
		{"narrower than the head", grid{head: []string{"system", "workers"}, rows: [][]string{{"x", "1"}}},
			"system  workers\nx             1\n",
			"| system | workers |\n| ------ | ------: |\n| x      |       1 |\n"},
		{"empty cells", grid{head: []string{"a", "b", ""}, rows: [][]string{{"x", "", ""}, {"y", "1", "core-bound"}}},
			"a  b\nx\ny  1  core-bound\n",
			"| a | b |            |\n| - | -: | ---------: |\n| x |   |            |\n| y | 1 | core-bound |\n"},
		{"letters of several bytes", grid{head: []string{"é", "mean ± std"}, rows: [][]string{{"ü", "1 ± 2"}}},
			"é  mean ± std\nü       1 ± 2\n",
			"| é | mean ± std |\n| - | ---------: |\n| ü |      1 ± 2 |\n"},
	} {
		var text, markdown strings.Builder
		c.grid.text(&text)
		c.grid.markdown(&markdown)
		require.Equal(t, c.text, text.String(), c.name)
		require.Equal(t, c.markdown, markdown.String(), c.name)
	}
}

// In both formats no line ends in a blank that text could do without, every row has a
// line, and columns of numbers end at the same place.
func TestGridIsAligned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		columns := rapid.IntRange(1, 5).Draw(t, "columns")
		cells := rapid.SliceOfN(rapid.StringMatching(`[a-zé±0-9]{1,8}`), columns, columns)
		g := grid{head: cells.Draw(t, "head"), rows: rapid.SliceOfN(cells, 0, 5).Draw(t, "rows")}
		var text, markdown strings.Builder
		g.text(&text)
		g.markdown(&markdown)
		lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
		require.Len(t, lines, 1+len(g.rows))
		for i, line := range lines {
			require.Equal(t, strings.TrimRight(line, " "), line)
			require.Equal(t, append([][]string{g.head}, g.rows...)[i], strings.Fields(line))
			if columns > 1 {
				require.Equal(t, utf8.RuneCountInString(lines[0]), utf8.RuneCountInString(line))
			}
		}
		marked := strings.Split(strings.TrimSuffix(markdown.String(), "\n"), "\n")
		require.Len(t, marked, 2+len(g.rows))
		for _, line := range marked {
			require.Equal(t, columns+1, strings.Count(line, "|"))
		}
	})
}

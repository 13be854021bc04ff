package cli

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// What the progress bar says fits the terminal with the bar, whatever its
// width, and says as much as there is room for.
func TestStatusFits(t *testing.T) {
	width := 0
	s := &screen{
		steps: 200, samples: 123456 * 60, last: stepEvent{Loss: 10.2345, Seconds: 60}, tested: true, accuracy: .98765,
		columns: func() int { return width },
	}
	s.share.exchange, s.share.total = 1, 1
	const bar = "  100% || (200/200) [1h10m59s:1h10m59s]"
	require.LessOrEqual(t, utf8.RuneCountInString(bar), barColumns(200))
	last := ""
	for width = barColumns(200); width < 200; width++ {
		text := s.status()
		require.LessOrEqual(t, len(text)+barColumns(200), width)
		require.GreaterOrEqual(t, len(text), len(last))
		last = text
		if width == 80 {
			for _, part := range []string{"123456/s", "loss 10.2", "acc 0.988", "exch 100%"} {
				require.Contains(t, text, part, "on the usual terminal")
			}
		}
	}
	require.True(t, strings.HasSuffix(last, "exchange 100%, accuracy 0.9877"), last)
}

package catalog

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A table has one line for each row, and a space only between fields.
func TestCell(t *testing.T) {
	for text, want := range map[string]string{
		"mug":      "mug",
		"grün-2":   "grün-2",
		"not good": `"not good"`,
		"a\tb":     `"a\tb"`,
		"a\r\nb":   `"a\r\nb"`,
		`5" tall`:  `"5\" tall"`,
		`"mug"`:    `"\"mug\""`,
		"a\u00a0b": `"a\u00a0b"`,
		`back\`:    `back\`,
	} {
		require.Equal(t, want, cell(text))
	}
}

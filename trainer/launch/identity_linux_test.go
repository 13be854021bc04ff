package launch

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseStat(t *testing.T) {
	const rest = " 1 7 7 0 -1 4194560 2 0 0 0 0 0 0 0 20 0 1 0 4711 1000 200"
	for _, c := range []struct {
		stat  string
		start uint64
		want  State
	}{
		{"7 (sh) S" + rest, 4711, Alive},
		{"7 (a) Z) R" + rest, 4711, Alive}, // the name is "a) Z"
		{"7 (sh) T" + rest, 4711, Stopped},
		{"7 (sh) t" + rest, 4711, Stopped},
		{"7 (sh) Z" + rest, 4711, Dead},
		{"7 (sh) S 1 7", 0, Unknown},
		{"", 0, Unknown},
	} {
		start, s := parseStat([]byte(c.stat))
		require.Equal(t, c.start, start, c.stat)
		require.Equal(t, c.want, s, c.stat)
	}
}

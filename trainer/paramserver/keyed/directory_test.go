package keyed

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// In any order, the bytes of two servers differ by at most the largest value.
func TestAssign(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, 1000), 1, 50).Draw(t, "sizes")
		d := newDirectory(rapid.IntRange(1, 8).Draw(t, "servers"))
		for i, size := range sizes {
			key := string(rune('a' + i))
			server := d.assign(key, size)
			require.Equal(t, server, d.assign(key, 7), "a key stays")
		}
		require.LessOrEqual(t, slices.Max(d.bytes)-slices.Min(d.bytes), slices.Max(sizes))
	})
}

func TestListing(t *testing.T) {
	sizes := map[string]int{"b": 0, "a 1": 7, "ä": 12}
	text := listing(sizes)
	require.Equal(t, "7 a 1\n0 b\n12 ä\n", text)
	d := newDirectory(3)
	require.NoError(t, d.list(text, 2))
	require.Equal(t, []int{0, 0, 19}, d.bytes)
	require.Equal(t, map[string]int{"b": 2, "a 1": 2, "ä": 2}, d.servers)
	require.NoError(t, d.list("", 1))
	for _, wrong := range []string{"x", "7", "7 ", "-1 c", "99999999999 c", "x c", "7 a\xff\n"} {
		require.ErrorContains(t, d.list(wrong, 1), "which is no key")
	}
	require.ErrorContains(t, d.list("1 b\n", 0), `servers 2 and 0 both hold "b"`)
}

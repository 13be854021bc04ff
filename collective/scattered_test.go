package collective

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// A cursor returns all bytes once, in order, however they are cut.
func TestCursor(t *testing.T) {
	all := []byte("all human beings are born free")
	for _, cuts := range [][]int{{30}, {1, 0, 29}, {0, 0, 7, 8, 15, 0}, {3, 3, 3, 3, 3, 3, 3, 3, 3, 3}} {
		var s scattered
		rest := all
		for _, n := range cuts {
			s, rest = append(s, rest[:n]), rest[n:]
		}
		for step := 1; step <= len(all)+1; step++ {
			c := cursor{left: s}
			var got []byte
			for at := 0; at < len(all); at += step {
				parts := c.next(nil, step)
				require.NotContains(t, parts, []byte{}, "empty pieces are left out")
				piece := bytes.Join(parts, nil)
				require.Len(t, piece, min(step, len(all)-at))
				got = append(got, piece...)
			}
			require.Equal(t, string(all), string(got), "%v, %d at a time", cuts, step)
			require.Empty(t, c.next(nil, 1))
		}
	}
}

// The own piece of an AllToAllW with many short vectors takes time in proportion to them.
func BenchmarkCopyScattered(b *testing.B) {
	const n, width = 20_000, 64
	from, to := make(scattered, n), make(scattered, n)
	for i := range n {
		from[i], to[i] = make([]byte, width), make([]byte, width)
	}
	b.SetBytes(n * width)
	for range b.N {
		copyScattered(to, from)
	}
}

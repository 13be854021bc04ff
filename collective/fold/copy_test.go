package fold_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/fold"
)

func TestCopy(t *testing.T) {
	for _, n := range []int{0, 1, 256<<10 - 1, 256 << 10, 256<<10 + 1, 1 << 20, 1<<20 + 5} {
		src, dst := make([]byte, n), make([]byte, n+1)
		for i := range src {
			src[i] = byte(rand.Uint32())
		}
		fold.Copy(dst, src)
		require.Equal(t, src, dst[:n])
		require.Zero(t, dst[n], "a byte after the copy was written")
	}
}

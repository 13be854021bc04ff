package nn

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The vectors are from Thinc's NumpyOps.hash.
func TestMurmur(t *testing.T) {
	const london = 686896126224900680 // spaCy's id of "london"
	for _, c := range []struct {
		id   uint64
		seed uint32
		want [4]uint32
	}{
		{0, 0, [4]uint32{3428303819, 685728695, 3303603794, 4065689084}},
		{london, 8, [4]uint32{267864594, 1283566565, 2549280539, 4072833495}},
	} {
		require.Equal(t, c.want, murmur(c.id, c.seed), "id %d, seed %d", c.id, c.seed)
	}
}

package tcp

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHelloRoundTrip(t *testing.T) {
	h := hello{
		from:    Identity{Cluster: "c", Name: "vm1/0", Nonce: 1},
		want:    Peer{Name: strings.Repeat("x", 255), Nonce: 2},
		purpose: Purpose{Job: 3, Epoch: 4, Digest: 5, Rank: 6, Channel: Control},
		refusal: "no",
	}
	got, err := readHello(bytes.NewReader(h.append(nil)))
	require.NoError(t, err)
	require.Equal(t, h, got)
	whole := h.append(nil)
	for n := range whole {
		_, err := readHello(bytes.NewReader(whole[:n]))
		require.Error(t, err, "cut after %d bytes", n)
	}
}

func FuzzReadHello(f *testing.F) {
	h := hello{from: Identity{Cluster: "c", Name: "n"}}
	f.Add(h.append(nil))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		h, err := readHello(r)
		if err != nil {
			return
		}
		used := b[:len(b)-r.Len()]
		require.Equal(t, used, h.append(nil), "writing what was read gives the same bytes")
	})
}

package cluster

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/tcp"
)

// fakeTransport is a Transport that only has a name.
type fakeTransport struct {
	collective.Transport
	name string
}

// A Node uses the first transport of the table that works, and asks all before it,
// because other members may have allowed them.
func TestPickTransport(t *testing.T) {
	failure := errors.New("cannot be used")
	links := new(tcp.Transport)
	for name, test := range map[string]struct {
		config string
		works  []string // transports that can be used
		want   string   // "" is TCP
		asked  map[string]use
	}{
		"the first that works":   {TransportAuto, []string{"a", "b"}, "a", map[string]use{"a": allowed}},
		"the second":             {TransportAuto, []string{"b"}, "b", map[string]use{"a": allowed, "b": allowed}},
		"TCP, because none does": {TransportAuto, nil, "", map[string]use{"a": allowed, "b": allowed}},
		"the required one":       {"b", []string{"a", "b"}, "b", map[string]use{"a": off, "b": required}},
		"TCP is required":        {TransportTCP, []string{"a", "b"}, "", map[string]use{"a": off, "b": off}},
		"required, not working":  {"a", []string{"b"}, "error", map[string]use{"a": required}},
	} {
		t.Run(name, func(t *testing.T) {
			asked := map[string]use{}
			entry := func(name string) transport {
				return transport{name, func(_ context.Context, _ *Node, _ collective.View, links *tcp.Transport, u use) (collective.Transport, error) {
					asked[name] = u
					for _, w := range test.works {
						if w == name && u != off {
							return fakeTransport{name: name}, nil
						}
					}
					if u == required {
						return nil, failure
					}
					return links, nil
				}}
			}
			n := &Node{config: Config{Transport: test.config}}
			got, name, err := n.pick(t.Context(), []transport{entry("a"), entry("b")}, collective.View{}, links)
			require.Equal(t, test.asked, asked)
			switch test.want {
			case "error":
				require.ErrorIs(t, err, failure)
			case "":
				require.Same(t, links, got)
				require.Equal(t, TransportTCP, name)
			default:
				require.Equal(t, fakeTransport{name: test.want}, got)
				require.Equal(t, test.want, name)
			}
		})
	}
}

func TestTransportNames(t *testing.T) {
	require.Equal(t, []string{TransportAuto, TransportTCP, TransportSHM}, Transports())
	c := Config{Transport: "udp"}
	require.ErrorContains(t, c.complete(), `Transport must be one of auto, tcp, shm, not "udp"`)
}

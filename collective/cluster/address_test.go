package cluster

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// Of the addresses of a name, the best one of this machine is chosen.
func TestPickOwn(t *testing.T) {
	addrs := func(list ...string) (out []netip.Addr) {
		for _, a := range list {
			out = append(out, netip.MustParseAddr(a))
		}
		return out
	}
	own := addrs("127.0.0.1", "10.0.0.7", "fd00::7")
	for want, ips := range map[string][]netip.Addr{
		"10.0.0.7":  addrs("::1", "127.0.1.1", "192.0.2.1", "::ffff:10.0.0.7"),
		"127.0.1.1": addrs("::1", "127.0.1.1"),
		"fd00::7":   addrs("fd00::8", "fd00::7"),
	} {
		got, err := pickOwn("node7", ips, own)
		require.NoError(t, err)
		require.Equal(t, want, got.String())
	}
	_, err := pickOwn("node7", addrs("192.0.2.1", "::1"), own)
	require.EqualError(t, err, "cluster: node7 resolves to 192.0.2.1, ::1, which is not an address of this machine")
}

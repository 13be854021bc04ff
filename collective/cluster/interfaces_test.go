package cluster

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// An address is useless while its interface is down.
func TestCarried(t *testing.T) {
	a, b, c := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2"), netip.MustParseAddr("10.0.0.3")
	list := []networkInterface{{"lo", true, true, nil}, {"eth0", false, false, []netip.Addr{a, b}}, {"eth1", true, false, []netip.Addr{b}}}
	require.ErrorIs(t, checkUp(a, list), ErrInterface)
	require.EqualError(t, checkUp(netip.AddrFrom16(a.As16()), list[1:]), "cluster: network interface is down: eth0, which has this machine's address ::ffff:10.0.0.1: bring it up (ip link set eth0 up), or use another address (--bind)")
	require.NoError(t, checkUp(b, list))
	require.NoError(t, checkUp(c, list), "no interface with that address is down")
	local := netip.MustParseAddr("127.0.0.1")
	require.NoError(t, checkUp(local, list), "it has other addresses of 127.0.0.0/8, too")
	require.ErrorIs(t, checkUp(local, []networkInterface{{"lo", false, true, nil}}), ErrInterface, "as in a new network namespace")

	all, err := networkInterfaces()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	require.Equal(t, []netip.Addr{b}, reachable(list), "addresses of interfaces that are down are not offered")
	require.NoError(t, (&Config{Bind: netip.MustParseAddrPort("127.0.0.1:0")}).checkInterface())
}

package cluster

import (
	"fmt"
	"net"
	"net/netip"
)

// AddrTowards is the address of this machine from which a host:port is
// reached. Nothing is sent.
func AddrTowards(hostport string) (netip.Addr, error) {
	conn, err := net.Dial("udp", hostport)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("cluster: no way to %s: %w", hostport, err)
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}

// OwnAddr is an address of this machine that others may reach: private ones
// come first, IPv4 before IPv6.
func OwnAddr() (netip.Addr, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("cluster: listing this machine's addresses: %w", err)
	}
	var best netip.Addr
	points := 0
	for _, a := range list {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue
		}
		if p := suitability(prefix.Addr()); p > points {
			best, points = prefix.Addr(), p
		}
	}
	if points == 0 {
		return best, fmt.Errorf("cluster: this machine has no address but loopback: name one with a bind address")
	}
	return best, nil
}

// suitability ranks addresses for use by other machines; 0 is of no use.
func suitability(a netip.Addr) int {
	switch {
	case a.IsLoopback(), a.IsLinkLocalUnicast(), a.IsMulticast(), a.IsUnspecified():
		return 0
	case a.Is4() && a.IsPrivate():
		return 4
	case a.Is4():
		return 3
	case a.IsPrivate():
		return 2
	}
	return 1
}

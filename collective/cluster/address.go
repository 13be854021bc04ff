package cluster

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/collective/errtext"
)

// AddrTowards returns the address of this machine from which it reaches a
// host:port. It sends nothing.
func AddrTowards(hostport string) (netip.Addr, error) {
	conn, err := net.Dial("udp", hostport)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("cluster: cannot reach %s: %w", hostport, errtext.Reason(err))
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}

// LocalAddr returns the address of this machine that host means. An IP address is
// returned unchanged. Of several addresses of a name, it prefers one that others
// can reach.
func LocalAddr(host string) (netip.Addr, error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.Unmap(), nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(context.Background(), "ip", host)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("cluster: %w", err)
	}
	list, err := net.InterfaceAddrs()
	if err != nil {
		return netip.Addr{}, fmt.Errorf("cluster: listing this machine's addresses: %w", err)
	}
	var own []netip.Addr
	for _, a := range list {
		if prefix, err := netip.ParsePrefix(a.String()); err == nil {
			own = append(own, prefix.Addr())
		}
	}
	return pickOwn(host, ips, own)
}

// pickOwn returns the best of a name's addresses that belongs to this machine, as
// all of 127.0.0.0/8 does.
func pickOwn(host string, ips, own []netip.Addr) (netip.Addr, error) {
	best := netip.Addr{}
	var all []string
	for _, ip := range ips {
		ip = ip.Unmap()
		all = append(all, ip.String())
		mine := ip.Is4() && ip.IsLoopback() || slices.Contains(own, ip)
		if mine && (!best.IsValid() || suitability(ip) > suitability(best)) {
			best = ip
		}
	}
	if !best.IsValid() {
		return best, fmt.Errorf("cluster: %s resolves to %s, which is not an address of this machine", host, strings.Join(all, ", "))
	}
	return best, nil
}

// OwnAddr returns an address of this machine that others may reach. It prefers
// private addresses, and IPv4 to IPv6.
func OwnAddr() (netip.Addr, error) {
	list, err := networkInterfaces()
	if err != nil {
		return netip.Addr{}, err
	}
	own := reachable(list)
	if len(own) == 0 {
		for _, c := range list {
			for _, a := range c.addrs {
				if err := checkUp(a, list); err != nil && suitability(a) > 0 {
					return netip.Addr{}, err
				}
			}
		}
		return netip.Addr{}, fmt.Errorf("cluster: this machine has only loopback addresses; name another one with --bind (Config.Bind)")
	}
	return own[0], nil
}

// ownAddrs returns the addresses of this machine that others may reach, best first.
func ownAddrs() ([]netip.Addr, error) {
	list, err := networkInterfaces()
	return reachable(list), err
}

// reachable returns the addresses of interfaces that others may reach, best first.
func reachable(list []networkInterface) []netip.Addr {
	var own []netip.Addr
	for _, c := range list {
		for _, a := range c.addrs {
			if c.up && suitability(a) > 0 && !slices.Contains(own, a) {
				own = append(own, a)
			}
		}
	}
	slices.SortStableFunc(own, func(a, b netip.Addr) int { return suitability(b) - suitability(a) })
	return own
}

// dataPlane returns the address on which the data plane listens, and the addresses
// that others try, best first: that of Bind, then all others of the machine, with
// one port. If Bind is loopback, there is only that one.
func (c *Config) dataPlane() (listen netip.Addr, advertise []netip.Addr, err error) {
	bind := c.Bind.Addr().Unmap()
	switch {
	case len(c.DataAddrs) == 1:
		return c.DataAddrs[0], c.DataAddrs, nil
	case len(c.DataAddrs) > 1:
		return netip.Addr{}, c.DataAddrs, nil
	case bind.IsLoopback() || suitability(bind) == 0:
		return bind, []netip.Addr{bind}, nil
	}
	own, err := ownAddrs()
	if err != nil {
		return bind, nil, err
	}
	own = slices.DeleteFunc(own, func(a netip.Addr) bool { return a == bind })
	return netip.Addr{}, append([]netip.Addr{bind}, own...), nil
}

// hostPort returns what to listen on. The zero address means all addresses.
func hostPort(a netip.Addr) string {
	if !a.IsValid() {
		return ":0"
	}
	return netip.AddrPortFrom(a, 0).String()
}

// suitability ranks addresses for use by other machines. 0 means useless.
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

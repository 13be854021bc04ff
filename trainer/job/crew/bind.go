package crew

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/collective/cluster"
)

// parseBind parses --bind: an IP address, in brackets or not, or a host name, each with
// or without a port. The default of the port is port. If others is set, other machines
// must be able to reach the address.
func parseBind(text string, port uint16, others bool) (netip.AddrPort, error) {
	wrong := fmt.Errorf("--bind must be an address of this machine (an IP address or a host name, with or without :PORT), not %.100q", text)
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at, nil
	}
	host := text
	if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
		host = strings.TrimSuffix(inner, "]")
		if ip, err := netip.ParseAddr(host); err != nil || !ip.Is6() {
			return netip.AddrPort{}, wrong
		}
	} else if name, service, err := net.SplitHostPort(text); err == nil {
		n, err := strconv.ParseUint(service, 10, 16)
		if err != nil {
			return netip.AddrPort{}, wrong
		}
		host, port = name, uint16(n)
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return netip.AddrPortFrom(ip, port), nil
	}
	if !isHostName(host) {
		return netip.AddrPort{}, wrong
	}
	ip, err := cluster.LocalAddr(host)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("--bind %s: %w", text, err)
	}
	if others && ip.IsLoopback() && host != "localhost" {
		return netip.AddrPort{}, fmt.Errorf("--bind %s: this machine resolves the name to %v, which other machines cannot reach: use an address that they can reach, or correct /etc/hosts", text, ip)
	}
	return netip.AddrPortFrom(ip, port), nil
}

// isHostName reports whether name could be a host name, so that it is worth resolving.
func isHostName(name string) bool {
	for _, c := range name {
		if c <= ' ' || c > '~' || strings.ContainsRune(`:[]/\@"'`, c) {
			return false
		}
	}
	return name != "" && len(name) <= 253
}

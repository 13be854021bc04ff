package crew

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/ringtrain/ringtrain/collective/cluster"
)

// parseBind is the address that --bind means: an IP address, in brackets or not,
// or the name of a host, each with a port or without, for which port stands in.
// Where others is set, machines other than this one have to reach it.
func parseBind(text string, port uint16, others bool) (netip.AddrPort, error) {
	wrong := fmt.Errorf("--bind %.100q: it must be an address of this machine, an IP address or a host name, with or without :PORT", text)
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
		return netip.AddrPort{}, fmt.Errorf("--bind %s: this machine knows the name as %v, which other machines cannot reach: give the address that they reach, or correct /etc/hosts", text, ip)
	}
	return netip.AddrPortFrom(ip, port), nil
}

// isHostName reports whether a resolver could know a name.
func isHostName(name string) bool {
	for _, c := range name {
		if c <= ' ' || c > '~' || strings.ContainsRune(`:[]/\@"'`, c) {
			return false
		}
	}
	return name != "" && len(name) <= 253
}

package cli

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/ringtrain/ringtrain/collective/cluster"
)

// place is where this machine's workers find each other and other machines.
func (s *settings) place() (cluster.Config, error) {
	f := s.flags
	c := cluster.Config{Cluster: f.cluster, Nodes: f.nodes, Node: cluster.NodeName(), LocalSize: s.workers, Join: f.join, KeyFile: f.keyFile}
	c.Insecure = f.keyFile == "" // the user has been warned, or has said that it is known
	if c.Cluster == "" && f.nodes == 1 {
		c.Cluster = ownCluster()
	}
	for _, seed := range f.join {
		if _, _, err := net.SplitHostPort(seed); err != nil {
			return c, fmt.Errorf("--join %s: it must be HOST:PORT, the address that the first machine prints", seed)
		}
	}
	addr, err := bindAddress(f)
	if err != nil {
		return c, err
	}
	c.Bind = addr
	return c, portIsFree(addr)
}

// ownCluster is a name for a job that no other job has.
func ownCluster() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return "ringtrain-" + hex.EncodeToString(b[:])
}

// bindAddress is the address of --bind, or one that other machines reach.
func bindAddress(f trainFlags) (netip.AddrPort, error) {
	port := uint16(0)
	if f.nodes > 1 && len(f.join) == 0 {
		port = cluster.DefaultPort
	}
	if f.bind != "" {
		if ap, err := netip.ParseAddrPort(f.bind); err == nil {
			return ap, nil
		}
		ip, err := netip.ParseAddr(f.bind)
		if err != nil {
			return netip.AddrPort{}, fmt.Errorf("--bind %s: it must be an IP address of this machine, or ADDRESS:PORT", f.bind)
		}
		return netip.AddrPortFrom(ip, port), nil
	}
	ip := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	var err error
	switch {
	case len(f.join) > 0:
		ip, err = cluster.AddrTowards(f.join[0])
	case f.nodes > 1:
		ip, err = cluster.OwnAddr()
	}
	return netip.AddrPortFrom(ip, port), err
}

// portIsFree says who can't have a port before any worker is started.
func portIsFree(at netip.AddrPort) error {
	tcp, err := net.Listen("tcp", at.String())
	if err != nil {
		return portError(at, err)
	}
	_ = tcp.Close()
	udp, err := net.ListenPacket("udp", at.String())
	if err != nil {
		return portError(at, err)
	}
	return udp.Close()
}

func portError(at netip.AddrPort, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("--bind %v: the port is in use by another process; name another, or only the address for any free port", at)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("--bind %v: this machine has no such address", at)
	}
	return fmt.Errorf("--bind %v: %w", at, err)
}

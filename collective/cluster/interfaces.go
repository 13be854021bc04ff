package cluster

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// ErrInterface is matched if the network interface with this machine's address is
// down, so that no other machine can be reached.
var ErrInterface = errors.New("network interface is down")

// A networkInterface is one of this machine.
type networkInterface struct {
	name     string
	up       bool
	loopback bool
	addrs    []netip.Addr
}

// networkInterfaces returns all interfaces of this machine, up or down.
func networkInterfaces() ([]networkInterface, error) {
	list, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("cluster: listing this machine's interfaces: %w", err)
	}
	var all []networkInterface
	for _, i := range list {
		c := networkInterface{name: i.Name, up: i.Flags&net.FlagUp != 0, loopback: i.Flags&net.FlagLoopback != 0}
		addrs, _ := i.Addrs() // fails if the interface has disappeared
		for _, a := range addrs {
			if prefix, err := netip.ParsePrefix(a.String()); err == nil {
				c.addrs = append(c.addrs, prefix.Addr().Unmap())
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// checkUp returns ErrInterface if all interfaces that have the address are down. An
// address that no interface has may still work, as in 127.0.0.0/8, but not if the loopback
// interface is down, which in a new network namespace has no address either.
func checkUp(at netip.Addr, by []networkInterface) error {
	down := ""
	for _, c := range by {
		switch {
		case !slices.Contains(c.addrs, at.Unmap()) && !(c.loopback && at.Unmap().IsLoopback()):
		case c.up:
			return nil
		default:
			down = c.name
		}
	}
	if down == "" {
		return nil
	}
	return fmt.Errorf("cluster: %w: %s, which has this machine's address %v: bring it up (ip link set %s up), or use another address (--bind)", ErrInterface, down, at, down)
}

// checkInterface returns an error if no other machine can reach this machine's
// address.
func (c *Config) checkInterface() error {
	list, err := networkInterfaces()
	if err != nil {
		return nil // if we cannot check, assume that it works
	}
	return checkUp(c.Bind.Addr(), list)
}

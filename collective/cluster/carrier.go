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

// A carrier is one network interface of this machine.
type carrier struct {
	name  string
	up    bool
	addrs []netip.Addr
}

// carriers returns all interfaces of this machine, up or down.
func carriers() ([]carrier, error) {
	list, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("cluster: listing this machine's interfaces: %w", err)
	}
	var all []carrier
	for _, i := range list {
		c := carrier{name: i.Name, up: i.Flags&net.FlagUp != 0}
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

// carried returns ErrInterface if all interfaces that have the address are down. An
// address that no interface has may still work, as in 127.0.0.0/8.
func carried(at netip.Addr, by []carrier) error {
	down := ""
	for _, c := range by {
		switch {
		case !slices.Contains(c.addrs, at.Unmap()):
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

// fit returns an error if this machine's addresses cannot be reached at all.
func (c *Config) fit() error {
	list, err := carriers()
	if err != nil {
		return nil // if we cannot check, assume that it works
	}
	return carried(c.Bind.Addr(), list)
}

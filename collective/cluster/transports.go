package cluster

import (
	"context"
	"errors"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/shm"
	"github.com/ringtrain/ringtrain/collective/tcp"
)

var _ shm.Under = (*tcp.Transport)(nil)

// A transport is an alternative to TCP links for some or all members of a View.
type transport struct {
	name string // the value of Config.Transport that requires it

	// over returns a Transport that owns links, and uses them for control and for
	// members that it cannot reach otherwise. It returns links itself if this
	// transport cannot or may not be used. All members of the View call over, even
	// those that turned the transport off, so that they can agree. Before over fails
	// because the transport is required but cannot be used, it calls links.Abort, so
	// that the other members learn why.
	over func(ctx context.Context, n *Node, v collective.View, links *tcp.Transport, u use) (collective.Transport, error)
}

// A use says whether Config.Transport allows a transport.
type use int

const (
	off use = iota
	allowed
	required
)

// transports returns the alternatives to TCP, in the order in which Nodes try them.
func transports() []transport {
	return []transport{
		{TransportSHM, overSharedMemory},
	}
}

// Transports returns the values of Config.Transport.
func Transports() []string {
	names := []string{TransportAuto, TransportTCP}
	for _, t := range transports() {
		names = append(names, t.name)
	}
	return names
}

// pick makes the first transport that can be used for a View, and returns its name.
// If there is none, it returns links.
func (n *Node) pick(ctx context.Context, all []transport, v collective.View, links *tcp.Transport) (collective.Transport, string, error) {
	for _, t := range all {
		made, err := t.over(ctx, n, v, links, n.config.use(t.name))
		if err != nil || made != collective.Transport(links) {
			return made, t.name, err
		}
	}
	return links, TransportTCP, nil
}

// use says whether the Config allows a transport.
func (c *Config) use(name string) use {
	switch c.Transport {
	case name:
		return required
	case TransportAuto:
		return allowed
	}
	return off
}

// overSharedMemory uses memory that the members of this host share.
func overSharedMemory(ctx context.Context, n *Node, v collective.View, links *tcp.Transport, u use) (collective.Transport, error) {
	if err := n.arenas.Renew(); err != nil {
		return nil, err
	}
	policy, err := n.calibration()
	if err != nil {
		return nil, err
	}
	t, err := shm.Join(ctx, v, links, shm.Options{
		Off: u == off, Must: u == required, Log: n.config.Log, Arenas: &n.arenas,
		Calibration: policy, Calibrated: n.calibrated,
	})
	if errors.Is(err, shm.ErrNotShared) {
		links.Abort(&collective.RankError{Rank: v.Self, Node: v.Name(v.Self), Epoch: v.Epoch, Phase: "connect", Err: err})
	}
	return t, err
}

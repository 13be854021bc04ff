package membership

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"

	"github.com/hashicorp/memberlist"

	"github.com/ringtrain/ringtrain/collective"
)

// Config describes this process and the View that it forms with others.
type Config struct {
	// Member is this process. Name must be set and unique in the job. A Nonce of 0
	// is replaced by a random one. Node "" means Name, LocalSize 0 means 1. Local and
	// LocalSize count all processes of the node that belong to the View, including
	// servers. Addrs are listed best first; gossip carries as many as fit next to the
	// names and settings, at least a dozen if these are short. A Watcher sees Views
	// and is in none.
	Member collective.Member
	// Nodes is the number of machines in the first View, each with all of its
	// workers. 0 and 1 mean only this machine.
	Nodes int
	// NodeRank orders the machines of the first View: the machine with the lowest
	// number gets the first ranks. Machines with equal numbers are ordered by name.
	// All workers of a machine must have the same number.
	NodeRank int
	// Rank0 names the machine of rank 0, whatever its NodeRank: its Node, or the
	// host in a Node such as "host-7f3a12". One process may decide for all. If two
	// name different machines, or no machine has the name, View returns ErrDiffer.
	Rank0 string
	// Version is the program's. If two members have different non-empty versions,
	// View returns ErrDiffer.
	Version string
	// Same lists up to 8 settings, with short names and values, that must be equal in
	// all members. If two members have different values for one name, View returns
	// ErrDiffer.
	Same []Setting
	// MinSize is the minimum number of members of a later View. It counts only if it
	// is more than a majority of the previous View.
	MinSize int
	// Bind is where gossip listens, with TCP and UDP. Port 0 picks a free one. The
	// zero value means 127.0.0.1:0, which only this machine can reach.
	Bind netip.AddrPort
	// Advertise is the address at which others reach Bind, if it is not Bind's own.
	// With Bind 0.0.0.0 a private address of this machine is the default.
	Advertise netip.Addr
	// Join lists seeds, "host:port": gossip addresses of other processes. One live
	// seed is enough. Names are resolved at each attempt. The list may contain this
	// process.
	Join []string
	// Cluster separates jobs on one network: gossip with another Cluster is refused.
	// It is not secret. "" means "ringtrain".
	Cluster string
	// Key encrypts and authenticates gossip: 32 secret bytes. Gossip with a different
	// key, or without one, has no effect. nil means plain gossip.
	Key []byte
	// Check, if not nil, reports whether this machine is fit for the job. It is called
	// from time to time until there is a View. View returns its error. One goroutine
	// at a time calls it, and Close waits for that goroutine.
	Check func() error
	// Log may be nil.
	Log *slog.Logger
	// Progress, if not nil, is called when the set of present or missing processes
	// changes, until there is a View. Gone, if not nil, is called when a member of the
	// View leaves or seems dead to gossip. Gossip takes seconds to notice and may be
	// wrong.
	//
	// The Agent's own goroutine calls both. They must not block or call Leave or
	// Close.
	Progress func(Waiting)
	Gone     func(collective.Member)
	// Answer, if not nil, answers questions that other processes, such as Watchers,
	// send with Ask. Any holder of the key may ask. A nil answer sends nothing. One
	// goroutine of the Agent calls it, and Close waits for it, so it must return soon.
	// Gossip does not wait for it.
	Answer func(question []byte) []byte
}

// keySize is the length of a key for AES-256, in bytes.
const keySize = 32

// complete fills in defaults and lists all mistakes.
func (c *Config) complete() error {
	m := &c.Member
	if m.Node == "" {
		m.Node = m.Name
	}
	if m.LocalSize == 0 {
		m.LocalSize = 1
	}
	for m.Nonce == 0 {
		var b [8]byte
		_, _ = rand.Read(b[:]) // never fails, see crypto/rand
		m.Nonce = binary.LittleEndian.Uint64(b[:])
	}
	if !c.Bind.IsValid() {
		c.Bind = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), c.Bind.Port())
	}
	c.Bind = netip.AddrPortFrom(c.Bind.Addr().Unmap(), c.Bind.Port())
	c.Advertise = c.Advertise.Unmap()
	c.Join, c.Key = slices.Clone(c.Join), slices.Clone(c.Key)
	if c.Cluster == "" {
		c.Cluster = "ringtrain"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return errors.Join(c.mistakes()...)
}

func (c *Config) mistakes() (errs []error) {
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf("%w: %s", ErrConfig, fmt.Sprintf(format, args...)))
		}
	}
	m := c.Member
	bad(m.Name == "", "Member.Name is empty")
	bad(len(m.Name) > maxName || len(m.Node) > maxName, "the names %q and %q may have at most %d bytes each", m.Name, m.Node, maxName)
	bad(m.LocalSize < 1 || m.LocalSize > maxLocalSize, "Member.LocalSize must be from 1 to %d, not %d", maxLocalSize, m.LocalSize)
	bad(m.Local < 0 || m.Local >= m.LocalSize, "Member.Local must be from 0 to LocalSize-1 (%d), not %d", m.LocalSize-1, m.Local)
	bad(m.Role > collective.Watcher, "Member.Role must be %v, %v or %v, not %v", collective.Worker, collective.Server, collective.Watcher, m.Role)
	bad(c.Nodes < 0 || c.Nodes > maxNodes, "Nodes must be from 0 to %d, not %d", maxNodes, c.Nodes)
	bad(c.NodeRank < 0 || c.NodeRank > maxNodes, "NodeRank must be from 0 to %d, not %d", maxNodes, c.NodeRank)
	bad(len(c.Rank0) > maxName || len(c.Version) > maxName, "Rank0 %q and Version %q may have at most %d bytes each", c.Rank0, c.Version, maxName)
	bad(len(c.Same) > maxSame, "Same has %d settings, more than the limit of %d", len(c.Same), maxSame)
	bad(c.MinSize < 0, "MinSize must be at least 0, not %d", c.MinSize)
	bad(c.Nodes*m.LocalSize > maxMembers, "%d nodes of %d workers are more than %d members", c.Nodes, m.LocalSize, maxMembers)
	bad(c.Bind.Addr().Zone() != "" || c.Advertise.Zone() != "", "other machines cannot use an address with a zone (%v, %v)", c.Bind, c.Advertise)
	bad(c.Bind.Addr() == netip.IPv6Unspecified() && !c.Advertise.IsValid(), "with Bind %v, set Advertise to the address that others reach", c.Bind)
	bad(len(c.Cluster) > memberlist.LabelMaxSize, "Cluster has %d bytes, more than the limit of %d", len(c.Cluster), memberlist.LabelMaxSize)
	bad(c.Nodes == 0 && m.LocalSize <= 1 && len(c.Join) > 0 && m.Role != collective.Watcher,
		"Join names other processes, but nothing says how many there are: set Nodes to the number of machines (1 to train alone)")
	bad(c.Key != nil && len(c.Key) != keySize, "Key must have %d bytes, not %d", keySize, len(c.Key))
	for _, s := range c.Same {
		bad(len(s.Name) > maxName || len(s.Value) > maxName, "the name and the value of setting %q may have at most %d bytes each", s.Name, maxName)
	}
	for _, seed := range c.Join {
		_, _, err := net.SplitHostPort(seed)
		bad(err != nil, "a seed in Join must be HOST:PORT, not %q", seed)
	}
	return errs
}

// candidate is this process as it announces itself.
func (c *Config) candidate() candidate {
	return candidate{c.Member, wish{
		Format: metaVersion, Nodes: c.Nodes, NodeRank: c.NodeRank, Rank0: c.Rank0, Version: c.Version, Same: c.Same,
	}}
}

// gossip returns memberlist's settings. Compression is off because it would expose
// one more decoder to untrusted bytes. The faster profile suits only processes of one machine
// on loopback, which cannot be cut off.
func (c *Config) gossip(visit func(visitor)) *memberlist.Config {
	g := memberlist.DefaultLANConfig()
	if c.Bind.Addr().IsLoopback() && c.Nodes <= 1 {
		g = memberlist.DefaultLocalConfig()
	}
	g.Name = peerOf(c.Member).gossipName()
	g.Label = c.Cluster
	g.BindAddr = c.Bind.Addr().String()
	g.BindPort = int(c.Bind.Port())
	if c.Advertise.IsValid() {
		g.AdvertiseAddr = c.Advertise.String()
	}
	g.EnableCompression = false
	g.UDPBufferSize = 1400
	g.RequireNodeNames = true
	g.SecretKey = c.Key
	g.GossipVerifyIncoming, g.GossipVerifyOutgoing = true, true // with a key, neither send nor accept plain gossip
	g.LogOutput = nil
	g.Logger = bridge(c.Log, visit)
	return g
}

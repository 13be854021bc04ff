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

// Config says who this process is and with whom it forms a View.
type Config struct {
	// Member is this process. Name must be set, and unique in the job. Nonce 0
	// is drawn. Node "" means Name, LocalSize 0 means 1. Local and LocalSize
	// count every process of the node that is to be in the View, servers too.
	// Of Addrs, best first, others see as many as fit beside the names and the
	// settings, which is a dozen at least where these are short. A Watcher sees Views and is in none.
	Member collective.Member
	// Nodes is the number of machines in the first View, each with all of its
	// workers. 0 and 1 mean this machine's workers only.
	Nodes int
	// NodeRank is the place of this machine among those of the first View: ranks go
	// from the machine with the lowest number to that with the highest, and by name
	// where these are the same. All workers of a machine have the same.
	NodeRank int
	// Rank0 names the machine of rank 0, whatever its NodeRank: its Node, or the
	// host in a Node such as "host-7f3a12". One process that says so is enough; if
	// two name different machines, or there is none of that name, View returns
	// ErrDiffer.
	Rank0 string
	// Version is that of the program. Where members have different ones, neither
	// empty, View returns ErrDiffer.
	Version string
	// Same lists what all members must have the same values of, up to 8 settings
	// that have short names and values. Where members name the same setting with
	// different values, View returns ErrDiffer.
	Same []Setting
	// MinSize is the least number of members of a later View. It can only raise
	// what a majority of the View before takes.
	MinSize int
	// Bind is where gossip listens, by TCP and UDP. Port 0 is any free one. The
	// zero value is 127.0.0.1:0, which only this machine can reach.
	Bind netip.AddrPort
	// Advertise is the address that others reach Bind under, where that is not
	// Bind's own. With Bind 0.0.0.0 a private address of this machine is found.
	Advertise netip.Addr
	// Join lists seeds, "host:port": gossip addresses of other processes, of
	// which one that lives is enough. Names are resolved at each try. This
	// process itself may be among them.
	Join []string
	// Cluster keeps jobs on one network apart, and is not a secret: gossip with
	// another Cluster is refused. "" means "ringtrain".
	Cluster string
	// Key encrypts and authenticates gossip: 32 bytes that are secret. Gossip
	// with another key, or without one, has no effect. nil is plain gossip.
	Key []byte
	// Check, if not nil, is asked from time to time whether this machine is fit for
	// the job, until there is a View. What it returns View returns. It is called from
	// one goroutine at a time, which Close waits for.
	Check func() error
	// Log is told what goes on; nil for silence.
	Log *slog.Logger
	// Progress, if not nil, is called when it changes who is there and who is
	// missing, until there is a View. Gone, if not nil, is called for a member
	// of the View that gossip has given up, because it left or seems dead: a
	// warning that comes after seconds and may be wrong.
	//
	// Both are called from the Agent's own goroutine. They must not block and
	// must not call Leave or Close.
	Progress func(Waiting)
	Gone     func(collective.Member)
	// Answer, if not nil, answers what other processes, such as Watchers, ask with
	// Ask: anybody who has the key may. A nil answer is none. It is called from one
	// goroutine of the Agent's, which Close waits for, and must return soon; gossip
	// does not wait for it.
	Answer func(question []byte) []byte
}

// keySize is the bytes of a key for AES-256.
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
		if _, err := rand.Read(b[:]); err != nil {
			return fmt.Errorf("membership: no randomness: %w", err)
		}
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
	bad(len(m.Name) > maxName || len(m.Node) > maxName, "the names %q and %q may have %d bytes each", m.Name, m.Node, maxName)
	bad(m.LocalSize < 1 || m.LocalSize > maxLocalSize, "Member.LocalSize is %d, not 1 to %d", m.LocalSize, maxLocalSize)
	bad(m.Local < 0 || m.Local >= m.LocalSize, "Member.Local is %d, not 0 to %d (LocalSize is %d)", m.Local, m.LocalSize-1, m.LocalSize)
	bad(m.Role > collective.Watcher, "Member.Role is %v", m.Role)
	bad(c.Nodes < 0 || c.Nodes > maxNodes, "Nodes is %d, not 0 to %d", c.Nodes, maxNodes)
	bad(c.NodeRank < 0 || c.NodeRank > maxNodes, "NodeRank is %d, not 0 to %d", c.NodeRank, maxNodes)
	bad(len(c.Rank0) > maxName || len(c.Version) > maxName, "Rank0 %q and Version %q may have %d bytes each", c.Rank0, c.Version, maxName)
	bad(len(c.Same) > maxSame, "Same has %d settings, at most %d are possible", len(c.Same), maxSame)
	bad(c.MinSize < 0, "MinSize is %d", c.MinSize)
	bad(c.Nodes*m.LocalSize > maxMembers, "%d nodes of %d workers are more than %d members", c.Nodes, m.LocalSize, maxMembers)
	bad(c.Bind.Addr().Zone() != "" || c.Advertise.Zone() != "", "an address with a zone (%v, %v) means nothing to other machines", c.Bind, c.Advertise)
	bad(c.Bind.Addr() == netip.IPv6Unspecified() && !c.Advertise.IsValid(), "with Bind %v, Advertise must say which address others reach", c.Bind)
	bad(len(c.Cluster) > memberlist.LabelMaxSize, "Cluster has %d bytes, at most %d are possible", len(c.Cluster), memberlist.LabelMaxSize)
	bad(c.Nodes == 0 && m.LocalSize <= 1 && len(c.Join) > 0 && m.Role != collective.Watcher,
		"Join names other processes, but nothing says how many there are: set Nodes to the number of machines (1 to train alone)")
	bad(c.Key != nil && len(c.Key) != keySize, "Key has %d bytes, not %d", len(c.Key), keySize)
	for _, s := range c.Same {
		bad(len(s.Name) > maxName || len(s.Value) > maxName, "the name and the value of setting %q may have %d bytes each", s.Name, maxName)
	}
	for _, seed := range c.Join {
		_, _, err := net.SplitHostPort(seed)
		bad(err != nil, "seed %q is not host:port", seed)
	}
	return errs
}

// candidate is this process as it announces itself.
func (c *Config) candidate() candidate {
	return candidate{c.Member, wish{
		Format: metaVersion, Nodes: c.Nodes, NodeRank: c.NodeRank, Rank0: c.Rank0, Version: c.Version, Same: c.Same,
	}}
}

// gossip returns memberlist's settings. Compression is off because it is one
// decoder of foreign bytes more; the quicker profile is for processes that share
// a machine and an address that cannot be cut off.
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
	g.GossipVerifyIncoming, g.GossipVerifyOutgoing = true, true // nothing plain, either way, where there is a key
	g.LogOutput = nil
	g.Logger = bridge(c.Log, visit)
	return g
}

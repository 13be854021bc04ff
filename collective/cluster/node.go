package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/calibration"
	"github.com/ringtrain/ringtrain/collective/membership"
	"github.com/ringtrain/ringtrain/collective/shm"
	"github.com/ringtrain/ringtrain/collective/tcp"
	"github.com/ringtrain/ringtrain/collective/version"
)

// connectTime is the default of Config.ConnectTime. All members of a View were alive
// when it was agreed.
const connectTime = 30 * time.Second

// reportMargin is the time for reports of a failure to arrive.
const reportMargin = 5 * time.Second

// A Node is this process as a member of a job. Only one of Group and Regroup may run
// at a time.
type Node struct {
	arenas    shm.Arenas
	config    Config
	member    collective.Member
	connector *tcp.Connector
	listener  *tcp.Listener
	agent     *membership.Agent

	mu        sync.Mutex
	group     *collective.Group // the newest; earlier ones are closed
	transport string            // name of the transport of group; "" without a group
	report    calibration.Report

	links  knownLinks // used by connect only
	closed bool
}

// Join opens this process's ports and begins to look for the others, without waiting
// for them; Group waits. The error matches membership.ErrPortInUse if the port of
// Bind is in use, and ErrInterface if its interface is down.
func Join(ctx context.Context, c Config) (*Node, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	if err := c.checkInterface(); err != nil {
		return nil, err
	}
	n := &Node{config: c, member: collective.Member{
		Name: fmt.Sprintf("%s/%d", c.Node, c.Local), Nonce: nonce(),
		Node: c.Node, Local: c.Local, LocalSize: c.LocalSize, Host: host(), Role: c.Role,
	}}
	id, gossipKey, err := n.secure()
	if err != nil {
		return nil, err
	}
	listen, advertise, err := c.dataPlane()
	if err != nil {
		return nil, err
	}
	n.connector = tcp.NewConnector(id)
	n.connector.Log, n.connector.Streams = c.Log, c.Streams
	n.listener, err = tcp.Listen(ctx, hostPort(listen), id, n.connector)
	if err != nil {
		return nil, err
	}
	port := n.listener.Addr().(*net.TCPAddr).AddrPort().Port()
	for _, a := range advertise {
		n.member.Addrs = append(n.member.Addrs, netip.AddrPortFrom(a, port))
	}
	n.agent, err = membership.Start(ctx, membership.Config{
		Member: n.member, Nodes: c.Nodes, NodeRank: c.NodeRank, Rank0: c.Rank0, Version: version.Release(version.Recorded()), Same: c.same(),
		Check: c.checkInterface, MinSize: c.MinSize, Bind: c.Bind, Join: c.Join, Cluster: c.Cluster, Key: gossipKey,
		Log: c.Log, Progress: c.Progress, Answer: c.Answer,
	})
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// secure returns this process's identity for the others, and the gossip key.
func (n *Node) secure() (tcp.Identity, []byte, error) {
	id := tcp.Identity{Cluster: n.config.Cluster, Name: n.member.Name, Nonce: n.member.Nonce}
	key := n.config.Key
	if key == nil {
		return id, nil, nil
	}
	gossip, err := key.GossipKey()
	if err == nil {
		id.Secret, err = key.Identity(id.Name, id.Nonce)
	}
	if err != nil {
		return id, nil, fmt.Errorf("cluster: %w", err)
	}
	return id, gossip, nil
}

// Addr returns the gossip address of this process, for the Config.Join of others.
func (n *Node) Addr() netip.AddrPort { return n.agent.Addr() }

// Group waits until the expected members are present, agrees with them on a View and
// connects to each. Once the Node has a Group, it returns the newest, broken or not;
// Regroup makes another. Closing the Node closes the Group.
//
// Give ctx a deadline, as ringtrain's --join-timeout does. Errors:
//
//   - *membership.WaitError: ctx ended first. It says what was missing.
//   - membership.ErrDiffer, membership.ErrKey, ErrInterface: waiting cannot help.
//   - *BlockedError: the members gossip but cannot connect. Each of them gets it
//     within Config.ConnectTime.
func (n *Node) Group(ctx context.Context) (*collective.Group, error) {
	if g, err := n.newest(); g != nil || err != nil {
		return g, err
	}
	view, err := n.agent.View(ctx)
	if err != nil {
		return nil, err
	}
	if n.config.Progress != nil {
		n.config.Progress(membership.Waiting{
			Nodes: max(n.config.Nodes, 1), Workers: view.Size(), Present: view.Members, Addr: n.Addr(), Connecting: true,
			Notes: []string{"gossip works; if this lasts, a firewall may block the TCP ports of the workers"},
		})
	}
	return n.connect(ctx, view)
}

// newest returns the Group that was made last, or nil.
func (n *Node) newest() (*collective.Group, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, fmt.Errorf("cluster: %s: %w", n.member.Name, collective.ErrClosed)
	}
	return n.group, nil
}

// connect makes the Group of a View.
func (n *Node) connect(ctx context.Context, view collective.View) (*collective.Group, error) {
	dialling, cancel := context.WithTimeout(ctx, n.config.ConnectTime)
	links, err := n.connector.Connect(dialling, view)
	cancel()
	if err != nil {
		return nil, blocked(view, err)
	}
	// Others may still be connecting, and may have begun ConnectTime later. If they fail, they
	// say which connection is missing when their time is up, before this rank gives up.
	ctx, cancel = context.WithTimeout(ctx, 2*n.config.ConnectTime+reportMargin)
	defer cancel()
	n.calibrated(calibration.Report{})
	transport, name, err := n.pick(ctx, transports(), view, links)
	if err != nil {
		return nil, errors.Join(blocked(view, err), links.Close())
	}
	host := collective.OverTransport(view, transport)
	if err := n.measureLinks(ctx, view, name, host); err != nil {
		return nil, errors.Join(blocked(view, err), host.Close())
	}
	engine := collective.Engine(host)
	if n.config.Engine != nil {
		if engine, err = n.config.Engine(ctx, view, host); err != nil {
			return nil, err
		}
	}
	g := collective.NewGroup(view, engine, n.config.Group)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, errors.Join(collective.ErrClosed, g.Close())
	}
	n.group, n.transport = g, name
	return g, nil
}

// SharesMemory reports whether this process and the other members of its host
// exchange messages over shared memory in the newest Group. If not, they use TCP, as
// between hosts.
func (n *Node) SharesMemory() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.transport == TransportSHM
}

// Alloc returns count elements of type t, all zero, that the other processes of this
// host read and write in place during an AllReduce of them, or of a part of them. If
// every rank gives such memory, nothing is copied.
//
// Existing and later Groups can use the memory. It starts at a page boundary and
// stays until the process ends, so allocate it once, as for arenas of gradients. It
// is an error if there is not enough. On systems where processes cannot share
// memory, it is ordinary memory.
//
// Once a call has returned, even with an error, no other process writes to its
// vector. After an error the contents of the vector are unspecified, and later calls
// copy the memory until Regroup shares it again. Do not use the memory during
// Regroup, which keeps its contents and its address.
func (n *Node) Alloc(t collective.DType, count int) (collective.Vector, error) {
	width := t.Size()
	if width == 0 || count < 0 || count > math.MaxInt/width {
		return collective.Vector{}, fmt.Errorf("cluster: Alloc of %d elements of %v: unknown type or impossible count", count, t)
	}
	b, err := n.arenas.Alloc(count * width)
	if err != nil {
		return collective.Vector{}, fmt.Errorf("cluster: Alloc of %d elements of %v: %w", count, t, err)
	}
	return collective.OfBytes(b, t)
}

// Leave announces to the others that this process leaves, so that they need not detect
// it,
// and closes the Node.
func (n *Node) Leave(ctx context.Context) error {
	n.end()
	return errors.Join(n.agent.Leave(ctx), n.Close())
}

// Close closes the Node's Group and ports. A second Close does nothing.
func (n *Node) Close() error {
	n.end()
	n.connector.Close()
	err := errors.Join(n.listener.Close(), n.arenas.Close())
	if n.agent != nil {
		err = errors.Join(err, n.agent.Close())
	}
	return err
}

func (n *Node) end() {
	n.mu.Lock()
	n.closed = true
	n.mu.Unlock()
	n.closeGroup()
}

// closeGroup closes the Group, if any.
func (n *Node) closeGroup() {
	n.mu.Lock()
	g := n.group
	n.group = nil
	n.mu.Unlock()
	if g != nil {
		_ = g.Close()
	}
}

// same returns the settings that must be equal in all members.
func (c *Config) same() []membership.Setting {
	return append([]membership.Setting{
		{Name: "the wire format", Value: strconv.Itoa(tcp.Version)},
		{Name: "--streams", Value: strconv.Itoa(cmp.Or(c.Streams, tcp.AutoStreams))},
		{Name: "MinSize", Value: strconv.Itoa(c.MinSize)},
	}, c.Same...)
}

// nonce returns a random number that identifies this start of the process.
func nonce() uint64 {
	var b [8]byte
	for {
		_, _ = rand.Read(b[:])
		if x := binary.LittleEndian.Uint64(b[:]); x != 0 {
			return x
		}
	}
}

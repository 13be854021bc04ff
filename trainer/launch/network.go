package launch

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
)

// Errors of Namespaces and of a Network's methods.
var (
	// ErrNoNamespaces is returned by Namespaces if this process cannot create network
	// namespaces: because of the system, the user, or a missing program. The wrapping
	// error says which.
	ErrNoNamespaces = errors.New("launch: no network namespaces")
	// ErrNetworkClosed is returned after Close by everything that needs the network,
	// including Run with one of its commands.
	ErrNetworkClosed = errors.New("launch: the network is closed")
)

// MaxNodes is the largest number of nodes in a Network.
const MaxNodes = 250

// Bounds of a nonzero NetworkOptions.Link, in bits per second.
const (
	MinLink = 1e4
	MaxLink = 1e12
)

// NetworkOptions configures the links of a Network.
type NetworkOptions struct {
	// Link is the rate at which each node can send, and at which it can receive, in bits
	// per second: MinLink to MaxLink, or 0 for no limit. The two directions are
	// independent. See ParseRate. A busy processor may allow less. The rate counts
	// Ethernet frames of at most 1514 bytes, as on a wire, so TCP payload reaches at most
	// 95.6 % of it.
	Link int64
	// Burst is the number of bytes that may be sent without a pause after the link was
	// idle: at most and by default 32000, at least 3028, which is two frames.
	Burst int
}

// A Network makes one machine look like several to the processes started in it. Each node
// is a network namespace with its own address. All nodes are connected to one switch, a
// bridge in another namespace, and nothing else is. Nodes can reach each other but not
// this machine or anything beyond it. No firewall of this machine sees their packets, and
// networks do not see each other, although they use the same addresses. Only the network
// is separate: processes share files (including /sys), users, host name and time with the
// rest of the machine.
//
// The namespaces have no names. They exist as long as this process keeps them open or a
// process runs in them. The kernel therefore removes them and their links when this
// process ends, in whatever way, and nothing is left over. To look around in one, use
// `nsenter -t PID -n` with the pid of a worker in it.
//
// The methods are safe for concurrent use.
type Network struct {
	mu     sync.RWMutex
	closed bool
	hub    *namespace   // contains the switch
	nodes  []*namespace // by node number
}

// A Counter counts what one node has sent and received since the network was created.
// Bytes are those of Ethernet frames. Packets are counted as the kernel passes them on;
// for TCP, one may stand for many frames with a single header. What a full link drops
// counts only as Sent by its sender.
type Counter struct {
	SentBytes, SentPackets         uint64
	ReceivedBytes, ReceivedPackets uint64
}

// Len returns the number of nodes.
func (n *Network) Len() int { return len(n.nodes) }

// Addr returns the address of node i, counted from 0: 10.200.0.(i+1). All nodes are in
// one /24 network. If there is no node i, it returns the zero Addr.
func (n *Network) Addr(i int) netip.Addr {
	if i < 0 || i >= len(n.nodes) {
		return netip.Addr{}
	}
	return nodeAddr(i)
}

func nodeAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 200, 0, byte(i + 1)}) }

// Command returns a copy of c that Job.Run starts in node i. No program runs in between:
// the process is the worker itself. Run fails with ErrNetworkClosed after Close, and if
// there is no node i.
func (n *Network) Command(i int, c Command) Command {
	c.place = func(start func() error) error { return n.in(i, start) }
	return c
}

// in runs f in node i, on the calling goroutine. Sockets that f opens belong to the node;
// goroutines that f starts run outside of it.
func (n *Network) in(i int, f func() error) error {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.closed {
		return ErrNetworkClosed
	}
	if i < 0 || i >= len(n.nodes) {
		return fmt.Errorf("launch: there is no node %d; the network has nodes 0 to %d", i, len(n.nodes)-1)
	}
	return n.nodes[i].do(f)
}

// Counters returns the counters of all nodes, by number. They are read at the switch's
// end of each cable.
func (n *Network) Counters() ([]Counter, error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.closed {
		return nil, ErrNetworkClosed
	}
	return n.count()
}

// Close removes the network. It may be called more than once. Processes still running in
// a node keep their namespace but lose its link, so end the job first.
func (n *Network) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	n.closed = true
	errs := []error{n.hub.close()}
	for _, node := range n.nodes {
		errs = append(errs, node.close())
	}
	return errors.Join(errs...)
}

func cannot(why string) error {
	return fmt.Errorf("%w: %s", ErrNoNamespaces, why)
}

package launch

import (
	"errors"
	"fmt"
	"net/netip"
	"sync"
)

// Errors of Namespaces and of a Network's methods.
var (
	// ErrNoNamespaces is returned by Namespaces where this process cannot make
	// network namespaces: not on this system, not by this user, or not without
	// a program that is not installed. The error that wraps it says which.
	ErrNoNamespaces = errors.New("launch: no network namespaces")
	// ErrNetworkClosed is returned by everything that needs the network, Run
	// with one of its commands included, after Close.
	ErrNetworkClosed = errors.New("launch: the network is closed")
)

// MaxNodes is how many nodes a Network may have.
const MaxNodes = 250

// Bounds of NetworkOptions.Link where it is not 0, in bits per second.
const (
	MinLink = 1e4
	MaxLink = 1e12
)

// NetworkOptions describe the links of a Network.
type NetworkOptions struct {
	// Link is what each node can send, and what it can receive, in bits per
	// second, each direction for itself: MinLink to MaxLink, or 0 for no limit. See
	// ParseRate. A processor that is busy may allow less. It counts Ethernet
	// frames of 1514 bytes at most, as they would be on a wire, so of TCP's
	// payload 95.6 % of it arrive at best.
	Link int64
	// Burst is how many bytes may follow each other without a pause after the
	// link was idle: at most and by default 32000, at least 3028, two frames.
	Burst int
}

// A Network makes a machine look like several to the processes started in it:
// each node is a network namespace with an address of its own, and all nodes
// hang on one switch, which is a bridge in another namespace. Nothing else is
// on it: the nodes reach each other and neither this machine nor beyond, no
// firewall of this machine sees their packets, and networks do not see each
// other, though all have the same addresses. Only the network is apart; the
// processes share files (/sys among them), users, host name and time with the
// rest of the machine.
//
// The namespaces have no names. They exist as long as this process keeps them
// open, or a process lives in them, and so the kernel removes them, links and
// all, when this process ends, however it ends: there are no leftovers. To
// look around in one, use `nsenter -t PID -n` with the pid of a worker in it.
//
// The methods may be called from several goroutines.
type Network struct {
	mu     sync.RWMutex
	closed bool
	hub    *namespace   // where the switch is
	nodes  []*namespace // by node number
}

// A Counter tells what one node has sent and received since the network was
// made. Bytes are those of Ethernet frames. Packets are counted as the kernel
// hands them over, which for TCP may be many frames at once with one header.
// What a full link dropped is in Sent of its sender alone.
type Counter struct {
	SentBytes, SentPackets         uint64
	ReceivedBytes, ReceivedPackets uint64
}

// Len is the number of nodes.
func (n *Network) Len() int { return len(n.nodes) }

// Addr is the address of node i, which counts from 0: 10.200.0.(i+1). All
// nodes are in one network of /24. It is the zero Addr if there is no node i.
func (n *Network) Addr(i int) netip.Addr {
	if i < 0 || i >= len(n.nodes) {
		return netip.Addr{}
	}
	return nodeAddr(i)
}

func nodeAddr(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 200, 0, byte(i + 1)}) }

// Command returns c so changed that Job.Run starts it in node i. There is no
// program in between: the process is the worker itself. Run fails with
// ErrNetworkClosed after Close, and if there is no node i.
func (n *Network) Command(i int, c Command) Command {
	c.place = func(start func() error) error { return n.in(i, start) }
	return c
}

// in carries out f in node i, on the calling goroutine. What f opens belongs
// to the node; goroutines that f starts are outside of it.
func (n *Network) in(i int, f func() error) error {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.closed {
		return ErrNetworkClosed
	}
	if i < 0 || i >= len(n.nodes) {
		return fmt.Errorf("launch: node %d: the network has nodes 0 to %d", i, len(n.nodes)-1)
	}
	return n.nodes[i].do(f)
}

// Counters returns the counters of all nodes, by number. They are read where
// the nodes' cables meet the switch.
func (n *Network) Counters() ([]Counter, error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	if n.closed {
		return nil, ErrNetworkClosed
	}
	return n.count()
}

// Close takes the network apart. It may be called more than once. Processes
// that still live in a node keep their namespace and lose its link, so end
// the job first.
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

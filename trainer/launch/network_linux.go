package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of NetworkOptions.Burst, in bytes.
const (
	minBurst = 2 * 1514
	maxBurst = 32000
)

func (o NetworkOptions) check() (NetworkOptions, error) {
	if o.Burst == 0 {
		o.Burst = maxBurst
	}
	if o.Link != 0 && (o.Link < MinLink || o.Link > MaxLink) {
		return o, fmt.Errorf("launch: the link rate must be %.0e to %.0e bits per second, or 0 for no limit, not %d", MinLink, MaxLink, o.Link)
	}
	if o.Burst < minBurst || o.Burst > maxBurst {
		return o, fmt.Errorf("launch: the burst must be %d to %d bytes, not %d", minBurst, maxBurst, o.Burst)
	}
	return o, nil
}

// queueTime is how long a packet may wait at a full link.
const queueTime = 20 * time.Millisecond

// Namespaces creates a network of n nodes, which can reach each other when it returns. It
// needs root, or a user namespace with its own network (`unshare -Urn`), and the programs
// ip and, for a limited link, tc. If something is missing, the error is ErrNoNamespaces.
// The caller must Close the network. ctx only limits the creation.
func Namespaces(ctx context.Context, n int, o NetworkOptions) (*Network, error) {
	if n < 1 || n > MaxNodes {
		return nil, fmt.Errorf("launch: a network cannot have %d nodes; use 1 to %d", n, MaxNodes)
	}
	o, err := o.check()
	if err != nil {
		return nil, err
	}
	for _, program := range []string{"ip", "tc"} {
		if _, err := exec.LookPath(program); err != nil && (program == "ip" || o.Link > 0) {
			return nil, cannot(fmt.Sprintf("the program %s is not in PATH; install iproute2, or add /usr/sbin to PATH", program))
		}
	}
	all, err := newNamespaces(n + 1)
	switch {
	case errors.Is(err, unix.EPERM):
		return nil, cannot("creating them needs CAP_SYS_ADMIN; run as root, or under `unshare -Urn`")
	case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS):
		return nil, cannot("this kernel does not support them: " + err.Error())
	case err != nil:
		return nil, fmt.Errorf("launch: creating network namespaces: %w", err)
	}
	network := &Network{hub: all[0], nodes: all[1:]}
	if err := network.connect(ctx, o); err != nil {
		return nil, errors.Join(err, network.Close())
	}
	return network, nil
}

// connect creates the switch and a cable from each node to it, and waits until they work.
func (n *Network) connect(ctx context.Context, o NetworkOptions) error {
	// The switch comes first, so that no port has the same index as its eth0. The kernel
	// takes a second to activate the carrier of such a pair.
	if err := n.hub.do(func() error { return newSwitch(ctx) }); err != nil {
		return fmt.Errorf("launch: the switch: %w", err)
	}
	var ports, limits strings.Builder
	for i, node := range n.nodes {
		if err := node.plug(ctx, i, n.hub, o); err != nil {
			return fmt.Errorf("launch: node %d: %w", i, err)
		}
		fmt.Fprintf(&ports, "link set %s master switch up\n", port(i))
		fmt.Fprintln(&limits, o.limit(port(i)))
	}
	err := n.hub.do(func() error {
		if o.Link > 0 {
			if err := batch(ctx, "tc", limits.String()); err != nil {
				return err
			}
		}
		if err := batch(ctx, "ip", ports.String()); err != nil {
			return err
		}
		for i := range n.nodes {
			if err := awaitLink(ctx, port(i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("launch: the switch: %w", err)
	}
	for i, node := range n.nodes {
		if err := node.do(func() error { return awaitLink(ctx, "eth0") }); err != nil {
			return fmt.Errorf("launch: node %d: %w", i, err)
		}
	}
	return nil
}

func newSwitch(ctx context.Context) error {
	if err := disableIPv6(); err != nil {
		return err
	}
	return batch(ctx, "ip", "link add switch type bridge stp_state 0 mcast_snooping 0\nlink set switch up\n")
}

// awaitLink returns when the device of the calling thread's namespace passes packets, a
// moment after it is set up.
func awaitLink(ctx context.Context, device string) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for {
		link, err := net.InterfaceByName(device)
		if err != nil {
			return err
		}
		if link.Flags&net.FlagRunning != 0 {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the link of %s: %w", device, context.Cause(ctx))
		}
	}
}

// plug connects node i to the switch.
func (s *namespace) plug(ctx context.Context, i int, hub *namespace, o NetworkOptions) error {
	var size string
	if o.Link > 0 {
		size = fmt.Sprintf(" mtu %d gso_max_size %d", o.mtu(), o.gsoSize())
	}
	return s.do(func() error {
		if err := disableIPv6(); err != nil {
			return err
		}
		// ip inherits its first extra file as descriptor 3.
		lines := fmt.Sprintf("link add eth0%s type veth peer name %s%s netns /proc/self/fd/3\n", size, port(i), size) +
			fmt.Sprintf("address add %s/24 dev eth0\n", nodeAddr(i)) +
			"link set lo up\nlink set eth0 up\n"
		if err := batch(ctx, "ip", lines, hub.file); err != nil {
			return err
		}
		if o.Link == 0 {
			return nil
		}
		return batch(ctx, "tc", o.limit("eth0")+"\n")
	})
}

// port returns the name of node i's port at the switch.
func port(i int) string { return "node" + strconv.Itoa(i) }

// limit returns the tc line that limits what a device sends.
func (o NetworkOptions) limit(device string) string {
	queue := min(o.Link/8*queueTime.Milliseconds()/1000+int64(2*o.Burst), 1<<30)
	return fmt.Sprintf("qdisc add dev %s root tbf rate %dbit burst %db limit %db", device, o.Link, o.Burst, queue)
}

// jumbo is the MTU, in bytes, of networks whose bursts can hold several such packets;
// data centres use it. It costs less CPU time per byte, on a CPU that all nodes share.
const jumbo = 9000

func (o NetworkOptions) mtu() int {
	if o.Burst >= 3*jumbo {
		return jumbo
	}
	return 1500
}

// gsoSize returns the size up to which TCP may leave packets unsplit, as for a network
// card that splits them itself. The limiter splits packets larger than a burst, which
// costs more CPU time than the rest of the path. A little less than a burst was the best
// of the sizes tried, for 8 nodes at 1 Gbit/s on 2 cores.
func (o NetworkOptions) gsoSize() int { return max(o.Burst*15/16, minBurst) }

// disableIPv6 stops the kernel from sending IPv6 packets on its own in the calling
// thread's namespace, so that the counters show only the workers' traffic. If that is
// impossible, without IPv6 or in a container, the counters include a little more.
func disableIPv6() error {
	err := os.WriteFile("/proc/sys/net/ipv6/conf/default/disable_ipv6", []byte("1"), 0)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EROFS) {
		return nil
	}
	return err
}

// batch has ip or tc execute lines in the calling thread's namespace.
func batch(ctx context.Context, program, lines string, files ...*os.File) error {
	cmd := exec.CommandContext(ctx, program, "-batch", "-")
	cmd.Stdin = strings.NewReader(lines)
	cmd.ExtraFiles = files
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		output := strings.Join(strings.Fields(string(out)), " ")
		if lacks(output) {
			return cannot(fmt.Sprintf("this kernel lacks a bridge, veth or tbf: %s: %s", program, output))
		}
		return fmt.Errorf("%s: %w: %s", program, err, output)
	}
	return nil
}

// lacks reports, from the output of ip or tc, whether the kernel was built without a
// feature they asked for.
func lacks(output string) bool {
	for _, answer := range []string{"not supported", "Unknown device type", "kind is unknown"} {
		if strings.Contains(output, answer) {
			return true
		}
	}
	return false
}

// count reads the counters at the switch, where a node's sending appears as receiving.
func (n *Network) count() ([]Counter, error) {
	var table []byte
	err := n.hub.do(func() (err error) {
		table, err = os.ReadFile("/proc/thread-self/net/dev")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("launch: reading the counters: %w", err)
	}
	all := make([]Counter, len(n.nodes))
	for line := range strings.Lines(string(table)) {
		device, numbers, _ := strings.Cut(strings.TrimSpace(line), ":")
		i, err := strconv.Atoi(strings.TrimPrefix(device, "node"))
		if err != nil || i >= len(all) || port(i) != device {
			continue
		}
		var skip uint64 // errors, drops, fifo, frame, compressed, multicast
		_, err = fmt.Sscan(numbers, &all[i].SentBytes, &all[i].SentPackets, &skip, &skip, &skip, &skip, &skip, &skip,
			&all[i].ReceivedBytes, &all[i].ReceivedPackets)
		if err != nil {
			return nil, fmt.Errorf("launch: reading the counters of node %d: %w", i, err)
		}
	}
	return all, nil
}

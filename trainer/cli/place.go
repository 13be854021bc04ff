package cli

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/tcp"
)

// placeFlags are the flags of a command whose ranks may be on several machines.
type placeFlags struct {
	nodes    int
	join     []string
	bind     string
	cluster  string
	rank0    string
	insecure bool
	keyFile  string

	joinTimeout time.Duration // how long the members may take to come

	transport string // how the ranks reach each other
	streams   int    // over how many TCP connections, 0: chosen
}

// register adds the flags to those of a command.
func (f *placeFlags) register(cmd *cobra.Command) {
	under(cmd, networkFlags, func(flags *pflag.FlagSet) {
		flags.IntVar(&f.nodes, "nodes", 1, "`M` machines make up the job")
		flags.StringSliceVar(&f.join, "join", nil, "join the job through `HOST:PORT`, which the first machine prints; several, separated by commas, are tried in turn")
		flags.DurationVar(&f.joinTimeout, "join-timeout", joinTimeout, "exit with code 1 if machines of the job are still missing after `TIME`")
		flags.StringVar(&f.rank0, "rank0", "", "put rank 0, which prints tables and keeps checkpoints, on `NODE`: a host name, or a node name that ringtrain members shows (default the machine without --join)")
		flags.StringVar(&f.bind, "bind", "", "`ADDRESS` or ADDRESS:PORT of this machine that the others can reach: an IP address or a host name (default port 7946 on the first of several machines, else any free port)")
		flags.StringVar(&f.cluster, "cluster", "", "`NAME` of the job; jobs with different names ignore each other (default ringtrain with --nodes, else a random name)")
		flags.StringVar(&f.keyFile, "key-file", "", "encrypt and authenticate all traffic with the key in `FILE`, made by ringtrain keygen and the same on every machine (default $"+cluster.EnvKeyFile+")")
		flags.BoolVar(&f.insecure, "insecure", false, "do not warn that traffic between machines is neither encrypted nor authenticated")
		flags.StringVar(&f.transport, "transport", cluster.TransportAuto, "exchange data by `KIND`: shm (shared memory), tcp, inproc (goroutines of one process), or auto (shm on one host, else tcp)")
		flags.IntVar(&f.streams, "streams", 0, fmt.Sprintf("split large messages between two ranks over `N` TCP connections, 1 to %d, the same on every machine; try 4 where the network limits each connection (default %d)", tcp.MaxStreams, tcp.AutoStreams))
	})
}

// transports are what --transport may be.
func transports() []string {
	return []string{cluster.TransportAuto, cluster.TransportTCP, cluster.TransportSHM, "inproc"}
}

// check finds what is wrong with the flags alone. An inproc job is one process.
func (f *placeFlags) check(given func(string) bool, inproc bool) error {
	switch {
	case !slices.Contains(transports(), f.transport):
		return fmt.Errorf("--transport must be %s, not %s", strings.Join(transports(), ", "), f.transport)
	case f.streams < 0 || f.streams > tcp.MaxStreams:
		return fmt.Errorf("--streams must be 1 to %d, or 0 to leave it open, not %d", tcp.MaxStreams, f.streams)
	case f.nodes < 1:
		return errors.New("--nodes must be at least 1")
	case f.joinTimeout <= 0:
		return fmt.Errorf("--join-timeout must be more than 0, not %v", f.joinTimeout)
	case inproc && (f.nodes > 1 || len(f.join) > 0 || f.streams > 0):
		return errors.New("--transport inproc is one process: it goes with neither --nodes nor --join nor --streams")
	case inproc && (given("bind") || given("cluster")):
		return errors.New("--transport inproc is one process: it goes with neither --bind nor --cluster")
	case inproc && given("key-file"):
		return errors.New("--transport inproc is one process and sends nothing: it does not go with --key-file")
	case given("key-file") && f.keyFile == "":
		return errors.New("--key-file is empty: name the file that ringtrain keygen made")
	case f.nodes == 1 && len(f.join) > 0:
		return errors.New("--join needs --nodes: say how many machines make the job")
	case f.nodes == 1 && given("rank0"):
		return errors.New("--rank0 needs --nodes: one machine has all ranks")
	case f.nodes > maxRanks:
		return fmt.Errorf("--nodes must be at most %d, not %d", maxRanks, f.nodes)
	}
	// Given but empty is a variable of a script that is not set; what would
	// then happen is not what its author meant.
	for _, f := range []struct {
		flag  string
		empty bool
	}{{"join", len(f.join) == 0}, {"rank0", f.rank0 == ""}, {"bind", f.bind == ""}, {"cluster", f.cluster == ""}} {
		if given(f.flag) && f.empty {
			return fmt.Errorf("--%s is empty: give it a value, or leave it out", f.flag)
		}
	}
	return nil
}

// The most ranks that a view, and that one machine, has room for.
const (
	maxRanks = 8192
	maxLocal = 1024
)

// checkWorkers finds out whether a job of so many machines with so many workers
// each can be.
func checkWorkers(each, nodes int) error {
	switch {
	case each > maxLocal:
		return fmt.Errorf("--workers must be at most %d on one machine, not %d", maxLocal, each)
	case each*nodes > maxRanks:
		return fmt.Errorf("%d machines with --workers %d are more than %d ranks", nodes, each, maxRanks)
	}
	return nil
}

// first reports whether the others have to be told where to join.
func (f *placeFlags) first() bool { return f.nodes > 1 && len(f.join) == 0 }

// place is where this machine's workers, so many, find each other and other
// machines. It warns of traffic that anybody can read.
func (a *app) place(f placeFlags, workers int) (cluster.Config, error) {
	c := cluster.Config{Cluster: f.cluster, Nodes: f.nodes, Node: cluster.NodeName(), Rank0: f.rank0, LocalSize: workers, Join: f.join, Transport: f.transport, Streams: f.streams}
	if len(f.join) > 0 {
		c.NodeRank = 1 // after the machine that the others join
	}
	var err error
	if c.KeyFile, err = findKey(f.keyFile); err != nil {
		return c, err
	}
	c.Insecure = c.KeyFile == "" // the user is warned, or has said that it is known
	if c.Cluster == "" && f.nodes == 1 {
		c.Cluster = ownCluster()
	}
	for _, seed := range f.join {
		if host, port, err := net.SplitHostPort(seed); err != nil || host == "" || port == "" || port == "0" {
			return c, fmt.Errorf("--join %s: it must be HOST:PORT, the address that the first machine prints", seed)
		}
	}
	if a.launched != nil {
		err = a.takeSeat(&c, f)
	} else {
		c.Bind, err = bindAddress(f)
	}
	if err != nil {
		return c, err
	}
	if err := portIsFree(c.Bind); err != nil {
		return c, err
	}
	if !c.Bind.Addr().IsLoopback() && c.KeyFile == "" && !f.insecure && !a.follows() {
		fmt.Fprintf(a.stderr, "ringtrain: warning: traffic on %v is neither encrypted nor authenticated; make a key with ringtrain keygen (--key-file), or use a network that you trust (--insecure to say that you know)\n", c.Bind.Addr())
	}
	return c, nil
}

// ownCluster is a name for a job that no other job has.
func ownCluster() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return "ringtrain-" + hex.EncodeToString(b[:])
}

// bindAddress is the address of --bind, or one that other machines reach.
func bindAddress(f placeFlags) (netip.AddrPort, error) {
	port := uint16(0)
	if f.first() {
		port = cluster.DefaultPort
	}
	if f.bind != "" {
		return parseBind(f.bind, port, f.nodes > 1)
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

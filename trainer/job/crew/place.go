package crew

import (
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/tcp"
)

// A Place is where the workers of a job find each other, on one machine or on
// several. Start from Local.
type Place struct {
	Nodes    int      // machines of the job
	Join     []string // HOST:PORT of processes on other machines; none on the first
	Bind     string   // ADDRESS or ADDRESS:PORT of this machine that others reach; "": chosen
	Cluster  string   // name of the job; "": chosen
	Rank0    string   // node that has rank 0; "": the one without Join
	KeyFile  string   // encrypts all traffic; "": the file that the environment names, if any
	Insecure bool     // the user knows that traffic is not encrypted

	JoinTimeout time.Duration // how long to wait for all members

	Transport string // how the ranks reach each other, one of Transports
	Streams   int    // TCP connections between two ranks; 0: tcp.AutoStreams

	Process Process // launches the workers
}

// TransportInProcess is the transport between goroutines of one process.
const TransportInProcess = "inproc"

// Transports returns the values of Place.Transport.
func Transports() []string {
	return append(cluster.Transports(), TransportInProcess)
}

// Check reports the first mistake in p. Its errors name the flags of the commands.
func (p *Place) Check() error {
	inproc := p.Transport == TransportInProcess
	switch {
	case !slices.Contains(Transports(), p.Transport):
		return fmt.Errorf("--transport must be one of %s, not %q", strings.Join(Transports(), ", "), p.Transport)
	case p.Streams < 0 || p.Streams > tcp.MaxStreams:
		return fmt.Errorf("--streams must be from 1 to %d, or 0 for the default of %d, not %d", tcp.MaxStreams, tcp.AutoStreams, p.Streams)
	case p.Nodes < 1:
		return fmt.Errorf("--nodes must be at least 1, not %d", p.Nodes)
	case p.JoinTimeout <= 0:
		return fmt.Errorf("--join-timeout must be greater than 0, not %v", p.JoinTimeout)
	case inproc && (p.Nodes > 1 || len(p.Join) > 0 || p.Streams > 0):
		return errors.New("--transport inproc runs in one process: it cannot be combined with --nodes, --join or --streams")
	case inproc && (p.Bind != "" || p.Cluster != ""):
		return errors.New("--transport inproc runs in one process: it cannot be combined with --bind or --cluster")
	case inproc && p.KeyFile != "":
		return errors.New("--transport inproc runs in one process, which has no traffic to encrypt: it cannot be combined with --key-file")
	case p.Nodes == 1 && len(p.Join) > 0:
		return errors.New("--join needs --nodes, the number of machines in the job")
	case p.Nodes == 1 && p.Rank0 != "":
		return errors.New("--rank0 needs --nodes: without it, this machine has all ranks")
	case p.Nodes > MaxRanks:
		return fmt.Errorf("--nodes must be at most %d, not %d", MaxRanks, p.Nodes)
	}
	return nil
}

// Local returns the Place of a job on this machine alone, with the defaults of the
// commands.
func Local() Place {
	return Place{Nodes: 1, JoinTimeout: JoinTimeout, Transport: cluster.TransportAuto}
}

// Maximum numbers of ranks, of a job and of one machine.
const (
	MaxRanks = 8192
	MaxLocal = 1024
)

// CheckWorkers reports whether a job can have this many machines, with this many
// workers each.
func CheckWorkers(each, nodes int) error {
	switch {
	case each > MaxLocal:
		return fmt.Errorf("--workers must be at most %d on one machine, not %d", MaxLocal, each)
	case each*nodes > MaxRanks:
		return fmt.Errorf("%d machines with --workers %d are more than %d ranks", nodes, each, MaxRanks)
	}
	return nil
}

// First reports whether other machines need to know where to join.
func (p *Place) First() bool { return p.Nodes > 1 && len(p.Join) == 0 }

// Config returns where this machine's workers find each other and other machines. It
// warns on stderr if anybody can read the traffic.
func (p *Place) Config(workers int, stderr io.Writer) (cluster.Config, error) {
	c := cluster.Config{Cluster: p.Cluster, Nodes: p.Nodes, Node: cluster.NodeName(), Rank0: p.Rank0, LocalSize: workers, Join: p.Join, Transport: p.Transport, Streams: p.Streams}
	if len(p.Join) > 0 {
		c.NodeRank = 1 // after the first machine, which others join
	}
	var err error
	if c.KeyFile, err = FindKey(p.KeyFile); err != nil {
		return c, err
	}
	c.Insecure = c.KeyFile == "" // the user is warned below, or used --insecure
	if c.Cluster == "" && p.Nodes == 1 {
		c.Cluster = OwnCluster()
	}
	for _, seed := range p.Join {
		if host, port, err := net.SplitHostPort(seed); err != nil || host == "" || port == "" || port == "0" {
			return c, fmt.Errorf("--join must be HOST:PORT, the address that the first machine prints, not %q", seed)
		}
	}
	if p.Process.Launched != nil {
		err = p.adoptLaunched(&c)
	} else {
		c.Bind, err = p.bindAddress()
	}
	if err != nil {
		return c, err
	}
	if err := p.tryBind(c.Bind); err != nil {
		return c, err
	}
	if !c.Bind.Addr().IsLoopback() && c.KeyFile == "" && !p.Insecure && !p.Process.Follows() {
		fmt.Fprintf(stderr, "ringtrain: warning: traffic on %v is neither encrypted nor authenticated, and workers accept connections on every address of this machine; make a key with ringtrain keygen (--key-file), or use a network that you trust (--insecure to silence this warning)\n", c.Bind.Addr())
	}
	return c, nil
}

// adoptLaunched fills c with the place that mpirun or the like gave this process. Flags
// take precedence.
func (p *Place) adoptLaunched(c *cluster.Config) error {
	at, err := p.Process.Launched.Config()
	if err != nil {
		return err
	}
	c.Cluster, c.Node, c.NodeRank, c.Local = cmp.Or(p.Cluster, at.Cluster), at.Node, at.NodeRank, at.Local
	if c.Bind = at.Bind; p.Bind != "" { // the other processes know only the port
		if c.Bind, err = parseBind(p.Bind, at.Bind.Port(), p.Nodes > 1); err != nil {
			return err
		}
	}
	switch {
	case p.Process.Launched.Rank == 0:
		c.Join = nil
	case len(c.Join) == 0:
		c.Join = at.Join
	}
	return nil
}

// DefaultCluster is the default name of a job of several machines.
const DefaultCluster = "ringtrain"

// OwnCluster returns a name that no other job has.
func OwnCluster() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never fails, see crypto/rand
	return "ringtrain-" + hex.EncodeToString(b[:])
}

// bindAddress returns the address of --bind, or else one that the job's other machines
// reach.
func (p *Place) bindAddress() (netip.AddrPort, error) {
	port := uint16(0)
	if p.First() {
		port = cluster.DefaultPort
	}
	if p.Bind != "" {
		at, err := parseBind(p.Bind, port, p.Nodes > 1)
		if err == nil && at.Addr().IsUnspecified() {
			err = fmt.Errorf("--bind must be one address of this machine that the other machines can reach, not %s", p.Bind)
		}
		return at, err
	}
	ip := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	var err error
	switch {
	case len(p.Join) > 0:
		ip, err = towards(p.Join)
	case p.Nodes > 1:
		ip, err = cluster.OwnAddr()
	}
	return netip.AddrPortFrom(ip, port), err
}

// towards returns the address of this machine from which it reaches others, which preferably are
// on other machines. One that can be reached is enough.
func towards(others []string) (ip netip.Addr, err error) {
	for _, other := range others {
		at, why := cluster.AddrTowards(other)
		switch {
		case why != nil && err == nil:
			err = fmt.Errorf("--join: %w", why)
		case why == nil && (!ip.IsValid() || ip.IsLoopback()):
			ip = at
		}
	}
	if ip.IsValid() {
		return ip, nil
	}
	return ip, err
}

// tryBind reports an address or port that workers could not listen on. Launchers call it
// before they start a worker.
func (p *Place) tryBind(at netip.AddrPort) error {
	tcp, err := net.Listen("tcp", at.String())
	if err != nil {
		return p.bindError(at, err)
	}
	_ = tcp.Close()
	udp, err := net.ListenPacket("udp", at.String())
	if err != nil {
		return p.bindError(at, err)
	}
	return udp.Close()
}

// bindError names the address as the user gave it.
func (p *Place) bindError(at netip.AddrPort, err error) error {
	given := cmp.Or(p.Bind, at.String())
	switch {
	case errors.Is(err, syscall.EADDRINUSE) && (p.First() || p.Process.Launched != nil): // others know the port
		return fmt.Errorf("--bind %s: another process uses port %d; choose another port", given, at.Port())
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("--bind %s: another process uses port %d; choose another port, or give only the address to use any free port", given, at.Port())
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("--bind %s: this machine has no such address", given)
	}
	return fmt.Errorf("--bind %s: %w", given, err)
}

package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/membership"
	"github.com/ringtrain/ringtrain/collective/secret"
	"github.com/ringtrain/ringtrain/collective/tcp"
)

// DefaultPort is where gossip listens when a bind address names no port and
// several machines shall find each other.
const DefaultPort = 7946

// Config says who this process is and how it finds the others. The zero value
// is a job of one process.
type Config struct {
	Cluster string // jobs of different names do not see each other; "" is "ringtrain"
	Nodes   int    // machines that the job waits for; 0 is this one alone, and then Join is a mistake unless LocalSize is over 1

	Node      string // the launcher of this machine's workers; "" draws one
	Local     int    // which of its workers this is
	LocalSize int    // how many workers it has; 0 is 1

	// Role is what this process does in the job: Worker, the zero value, or Server.
	// Processes of both roles count in LocalSize and are ranks of the View, workers
	// first; View.Ranks tells them apart. To observe a job, use Watch.
	Role collective.Role

	// NodeRank is the place of this machine among those of the job. Ranks go from
	// the machine with the lowest number to that with the highest, and by Node where
	// these are the same. 0 is the first, or not to care.
	NodeRank int
	// Rank0 names the machine that shall have rank 0, whatever its NodeRank: its
	// Node, or its host where Node is one of NodeName. One member that says so is
	// enough. Group returns membership.ErrDiffer where it means no machine, or
	// members name different ones.
	Rank0 string

	Bind netip.AddrPort // where gossip listens; the zero value is 127.0.0.1, any port
	Join []string       // host:port of processes of the job; none for the first

	// DataAddrs are the addresses of this machine under which the others reach
	// it for all but gossip, best first. nil is every address of the machine,
	// that of Bind first; and that alone where it is loopback.
	DataAddrs []netip.Addr

	// MinSize is the least number of members that Regroup goes on with. It can
	// only raise what a majority takes. All members have the same.
	MinSize int
	// ConnectTime is how long the members of an agreed View get to connect, and
	// so to call Group or Regroup when the others have; 0 is 30 s.
	ConnectTime time.Duration

	// Transport says how ranks of one host reach each other: TransportAuto, also
	// if "", by memory that they share if they can; TransportTCP as others do, and
	// then all of that host; TransportSHM by shared memory, or Group fails with
	// shm.ErrNotShared.
	Transport string

	// Streams is over how many TCP connections large messages between two ranks
	// are spread: 1 to tcp.MaxStreams; 0 is tcp.AutoStreams. All members have the
	// same, or Group returns membership.ErrDiffer.
	Streams int

	// Key secures everything: gossip, and all that the workers send each other.
	// Without one, Bind is loopback, or Insecure says that whoever reaches it is
	// trusted. KeyFile names the file that Key is read from when it is nil; a
	// launcher passes that on, and never the Key.
	Key      *secret.Key
	KeyFile  string
	Insecure bool

	// Engine builds the engine of each Group on base, as ncclgroup.New does. base
	// belongs to it, also if it fails. ctx ends when the members' time to connect
	// does. If Engine is nil, the Group gets base.
	Engine func(ctx context.Context, v collective.View, base *collective.HostEngine) (collective.Engine, error)

	Group    collective.Options       // for the Groups of the Node
	Log      *slog.Logger             // nil is silent
	Progress func(membership.Waiting) // told whom Group waits for; may be nil
	// Answer answers what a Watcher asks; may be nil. See membership.Config.
	Answer func(question []byte) []byte
}

// The values of Config.Transport.
const (
	TransportAuto = "auto"
	TransportTCP  = "tcp"
	TransportSHM  = "shm"
)

// ErrNoKey is what errors.Is finds where others shall reach this process, and
// nothing says who they may be.
var ErrNoKey = errors.New("no key")

// complete fills in what the zero value stands for and says everything that is
// wrong.
func (c *Config) complete() error {
	if c.Cluster == "" {
		c.Cluster = "ringtrain"
	}
	if c.Node == "" {
		c.Node = NodeName()
	}
	c.LocalSize = max(c.LocalSize, 1)
	if !c.Bind.IsValid() {
		c.Bind = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)
	}
	if c.ConnectTime <= 0 {
		c.ConnectTime = connectTime
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Transport == "" {
		c.Transport = TransportAuto
	}
	var errs []error
	if c.Transport != TransportAuto && c.Transport != TransportTCP && c.Transport != TransportSHM {
		errs = append(errs, fmt.Errorf("transport %q: it must be %s, %s or %s", c.Transport, TransportAuto, TransportTCP, TransportSHM))
	}
	if c.Streams < 0 || c.Streams > tcp.MaxStreams {
		errs = append(errs, fmt.Errorf("%d streams: it must be 1 to %d, or 0 to leave it open", c.Streams, tcp.MaxStreams))
	}
	if c.Local < 0 || c.Local >= c.LocalSize {
		errs = append(errs, fmt.Errorf("worker %d of %d: Local counts from 0 to LocalSize-1", c.Local, c.LocalSize))
	}
	if c.Role != collective.Worker && c.Role != collective.Server {
		errs = append(errs, fmt.Errorf("role %v: a process joins as %v or %v; use Watch to observe a job", c.Role, collective.Worker, collective.Server))
	}
	if len(c.Cluster) > 200 || len(c.Node) > 200 {
		errs = append(errs, errors.New("the names of cluster and node have at most 200 bytes"))
	}
	if c.NodeRank < 0 {
		errs = append(errs, fmt.Errorf("node rank %d: it counts from 0", c.NodeRank))
	}
	if strings.Contains(c.Node, "/") {
		errs = append(errs, fmt.Errorf("node name %q: it must not contain a slash", c.Node))
	}
	for _, a := range c.DataAddrs {
		if !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || a.Zone() != "" {
			errs = append(errs, fmt.Errorf("data address %v: it must be one that the others reach", a))
		}
	}
	if c.Bind.Addr().IsUnspecified() {
		errs = append(errs, fmt.Errorf("bind address %v: name one address of this machine that the others reach", c.Bind.Addr()))
	}
	if c.Key == nil && c.KeyFile != "" {
		key, err := secret.ReadFile(c.KeyFile)
		if err != nil {
			errs = append(errs, err)
		}
		c.Key = &key
	}
	if at := c.exposed(); c.Key == nil && !c.Insecure && at.IsValid() {
		errs = append(errs, fmt.Errorf("%w: whoever reaches %v could join in and read along: make a key with ringtrain keygen, or say --insecure (Config.Insecure) on a network that you trust", ErrNoKey, at))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// exposed is an address that other machines reach, if one is listened on.
func (c *Config) exposed() netip.Addr {
	for _, a := range append([]netip.Addr{c.Bind.Addr()}, c.DataAddrs...) {
		if !a.IsLoopback() {
			return a
		}
	}
	return netip.Addr{}
}

// NodeName is a name for a launcher: the host's name and six hex digits that
// tell two launchers of one host, or of hosts with one name, apart.
func NodeName() string {
	var id [3]byte
	_, _ = rand.Read(id[:]) // never fails, see crypto/rand
	return shortHostName() + "-" + hex.EncodeToString(id[:])
}

// shortHostName is the host's name without its domain, at most 63 bytes.
func shortHostName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "node"
	}
	host, _, _ = strings.Cut(host, ".")
	return host[:min(len(host), 63)]
}

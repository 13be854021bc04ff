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
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/calibration"
	"github.com/ringtrain/ringtrain/collective/membership"
	"github.com/ringtrain/ringtrain/collective/secret"
	"github.com/ringtrain/ringtrain/collective/tcp"
)

// DefaultPort is gossip's port on the first of several machines, if its bind address
// names none.
const DefaultPort = 7946

// Config describes this process and how it finds the others. The zero value is a
// job of one process.
type Config struct {
	Cluster string // separates jobs: those with different names ignore each other; at most 200 bytes; "" means "ringtrain"

	// Nodes is the number of machines that the job waits for. 0 means this one alone;
	// then Join is an error unless LocalSize is more than 1.
	Nodes int

	Node      string // names the launcher of this machine's workers; with "/" and Local, at most 96 bytes; "" means a random name
	Local     int    // index of this process among its workers
	LocalSize int    // number of its workers; 0 means 1

	// Role is Worker, the zero value, or Server. Processes of both roles count in
	// LocalSize and are ranks of the View, workers first; View.Ranks returns either
	// kind. To observe a job, use Watch.
	Role collective.Role

	// NodeRank orders the machines of the job: the machine with the lowest number gets
	// the first ranks. Machines with equal numbers are ordered by Node.
	NodeRank int
	// Rank0 names the machine of rank 0, whatever its NodeRank: its Node, or its host
	// if Node is from NodeName. One member may decide for all. Group returns
	// membership.ErrDiffer if no machine has the name, or members name different
	// machines.
	Rank0 string

	Bind netip.AddrPort // where gossip listens; the zero value means 127.0.0.1 and any port
	Join []string       // host:port of processes of the job; empty for the first

	// DataAddrs are the addresses at which others reach this machine for everything
	// except gossip, best first. nil means that of Bind, then all others of the
	// machine; or only that of Bind if it is loopback. With one, the process listens only
	// there; with several, on all addresses of the machine.
	DataAddrs []netip.Addr

	// MinSize is the minimum number of members with which Regroup continues. It counts
	// only if it is more than a majority. It must be equal in all members.
	MinSize int
	// ConnectTime bounds how long the members of an agreed View take to connect, and
	// so how much later than the others one may call Group or Regroup. 0 means 30 s.
	ConnectTime time.Duration

	// Transport chooses how ranks of one host exchange messages:
	//
	//   - TransportAuto, or "": over memory that they share, if they can.
	//   - TransportTCP: over TCP. If one rank of a host says so, all of them use it.
	//   - TransportSHM: over shared memory, or Group fails with shm.ErrNotShared.
	//
	// Use a process for each rank. Several Nodes in one process work, but ranks that wait in
	// shared memory keep the threads of the process busy, so on a busy machine the others wait
	// for seconds. For ranks that are goroutines there is collective.Local.
	Transport string

	// Calibration says how the ranks of one host choose what depends on its processor and
	// kernel, in the form of calibration.Parse. The value of the host's lowest rank
	// counts. "" means auto: choices from CacheDir or, if that has none, from trial calls
	// when the host forms its first group, which take at most calibration.Bound.
	Calibration string
	// CacheDir is where choices are kept. "" means the value of EnvCacheDir or, without
	// one, "ringtrain" in the user's cache directory.
	CacheDir string

	// Streams is the number of TCP connections for large messages between two ranks: 1
	// to tcp.MaxStreams. 0 means tcp.AutoStreams. If members differ, Group returns
	// membership.ErrDiffer.
	Streams int

	// Same lists up to 5 settings of the program, with short names and values. If two members
	// have different values for one name, Group returns membership.ErrDiffer.
	Same []membership.Setting

	// Key secures gossip and all messages between workers. Without a key, Bind must be
	// loopback, and DataAddrs may have only one address, also loopback. Insecure lifts that,
	// and trusts every process that can reach them. If Key is nil, it is read from KeyFile.
	// A launcher passes on KeyFile, never Key.
	Key      *secret.Key
	KeyFile  string
	Insecure bool

	// Engine builds the engine of each Group on base, as ncclgroup.New does. It owns
	// base, even if it fails. ctx ends after a little more than twice ConnectTime. If Engine is nil, the Group
	// gets base.
	Engine func(ctx context.Context, v collective.View, base *collective.HostEngine) (collective.Engine, error)

	Group    collective.Options       // for the Groups of the Node
	Log      *slog.Logger             // may be nil
	Progress func(membership.Waiting) // gets what Group waits for; may be nil
	// Answer answers questions of Watchers; may be nil. See membership.Config.
	Answer func(question []byte) []byte
}

// Values of Config.Transport. Transports returns all of them.
const (
	TransportAuto = "auto"
	TransportTCP  = "tcp"
	TransportSHM  = "shm"
)

// ErrNoKey is matched if other machines can reach this process, and there is neither
// a key nor Insecure.
var ErrNoKey = errors.New("no key")

// complete fills in defaults and reports all mistakes.
func (c *Config) complete() error {
	if c.Cluster == "" {
		c.Cluster = "ringtrain"
	}
	if c.Node == "" {
		c.Node = NodeName()
	}
	var errs []error
	if c.LocalSize < 0 {
		errs = append(errs, fmt.Errorf("LocalSize must be at least 0, not %d", c.LocalSize))
	}
	c.LocalSize = max(c.LocalSize, 1)
	if !c.Bind.IsValid() {
		c.Bind = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)
	}
	if c.ConnectTime == 0 {
		c.ConnectTime = connectTime
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Transport == "" {
		c.Transport = TransportAuto
	}
	if !slices.Contains(Transports(), c.Transport) {
		errs = append(errs, fmt.Errorf("Transport must be one of %s, not %q", strings.Join(Transports(), ", "), c.Transport))
	}
	if _, err := calibration.Parse(c.Calibration); err != nil {
		errs = append(errs, fmt.Errorf("calibration (%s): %w", EnvCalibration, err))
	}
	if c.Streams < 0 || c.Streams > tcp.MaxStreams {
		errs = append(errs, fmt.Errorf("Streams must be 1 to %d, or 0 for the default, not %d", tcp.MaxStreams, c.Streams))
	}
	if c.Local < 0 || c.Local >= c.LocalSize {
		errs = append(errs, fmt.Errorf("worker %d of %d: Local counts from 0 to LocalSize-1", c.Local, c.LocalSize))
	}
	if c.Role != collective.Worker && c.Role != collective.Server {
		errs = append(errs, fmt.Errorf("role %v: a process joins as %v or %v; use Watch to observe a job", c.Role, collective.Worker, collective.Server))
	}
	if len(c.Cluster) > 200 {
		errs = append(errs, fmt.Errorf("Cluster must have at most 200 bytes, not %d", len(c.Cluster)))
	}
	if c.NodeRank < 0 {
		errs = append(errs, fmt.Errorf("NodeRank must be at least 0, not %d", c.NodeRank))
	}
	if strings.Contains(c.Node, "/") {
		errs = append(errs, fmt.Errorf("node name %q must not contain a slash", c.Node))
	}
	if strings.ContainsFunc(c.Node, unicode.IsControl) {
		errs = append(errs, fmt.Errorf("node name %q must not contain control characters", c.Node))
	}
	if c.ConnectTime < 0 {
		errs = append(errs, fmt.Errorf("ConnectTime must be at least 0, not %v", c.ConnectTime))
	}
	for _, a := range c.DataAddrs {
		if !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || a.Zone() != "" {
			errs = append(errs, fmt.Errorf("data address %v must be one that other machines can reach", a))
		}
	}
	if c.Bind.Addr().IsUnspecified() {
		errs = append(errs, fmt.Errorf("bind address %v: name one address of this machine that other machines can reach", c.Bind.Addr()))
	}
	if c.Key == nil && c.KeyFile != "" {
		key, err := secret.ReadFile(c.KeyFile)
		if err != nil {
			errs = append(errs, err)
		}
		c.Key = &key
	}
	if at := c.exposed(); c.Key == nil && !c.Insecure && at != "" {
		errs = append(errs, fmt.Errorf("%w: any process that can reach %s could join and read the traffic: make a key with ringtrain keygen, or give --insecure (Config.Insecure) on a network that you trust", ErrNoKey, at))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("cluster: %w", oneLine{err})
	}
	return nil
}

// oneLine is several errors in one line.
type oneLine struct{ error }

func (e oneLine) Error() string { return strings.ReplaceAll(e.error.Error(), "\n", "; ") }

func (e oneLine) Unwrap() error { return e.error }

// exposed names an address that we listen on and other machines can reach, or returns "".
func (c *Config) exposed() string {
	for _, a := range append([]netip.Addr{c.Bind.Addr()}, c.DataAddrs...) {
		if !a.IsLoopback() {
			return a.String()
		}
	}
	if len(c.DataAddrs) > 1 { // see dataPlane
		return "an address of this machine, because several DataAddrs make it listen on all of them,"
	}
	return ""
}

// NodeName returns a name for a launcher: the host's name and six random hex digits,
// so that two launchers of one host, or of hosts with one name, have different
// names.
func NodeName() string {
	var id [3]byte
	_, _ = rand.Read(id[:]) // never fails, see crypto/rand
	return shortHostName() + "-" + hex.EncodeToString(id[:])
}

// shortHostName returns the host's name without its domain, at most 63 bytes.
func shortHostName() string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "node"
	}
	host, _, _ = strings.Cut(host, ".")
	return host[:min(len(host), 63)]
}

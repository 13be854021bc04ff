package cluster

import (
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"strconv"
)

// Launched is what this process knows about its job from a general launcher, such as
// torchrun. See [FromLauncher].
type Launched struct {
	By   string // "torchrun", "Open MPI", "Slurm" or "MPICH"
	Job  string // equal in all processes of the job, and unique to it
	Rank int    // of this process, counted over all machines
	Size int    // processes of the job

	Local     int // rank among the processes of this machine
	LocalSize int // processes of this machine
	NodeRank  int // rank of this machine
	Nodes     int // machines of the job

	Seed string // host:port of rank 0's gossip
}

// FromLauncher reads the variables that torchrun, Open MPI, Slurm's srun, and MPICH
// (and Intel MPI) set for each process that they start; getenv is os.Getenv. It
// returns nil if there are none, and for a job of one process. The ranks of one
// machine must be consecutive, as these launchers make them by default.
//
// Rank 0 gossips at MASTER_ADDR:MASTER_PORT. Without MASTER_PORT, the port is
// derived from the launcher's name for the job. Without MASTER_ADDR, the address is
// loopback if all processes share a machine, and the first machine of the step under
// Slurm. Otherwise FromLauncher returns an error.
func FromLauncher(getenv func(string) string) (*Launched, error) {
	for _, d := range dialects() {
		l, err := d.read(environment(getenv))
		if err != nil {
			return nil, fmt.Errorf("cluster: started by %s: %w", d.by, err)
		}
		if l != nil && l.Size > 1 {
			return l, nil
		}
	}
	return nil, nil
}

// Config returns a Config for this process of the job. The caller sets Key, Engine
// and everything else that the launcher does not know.
func (l *Launched) Config() (Config, error) {
	c := Config{
		Cluster: "ringtrain-" + l.digest(), Node: l.node(), NodeRank: l.NodeRank,
		Nodes: l.Nodes, Local: l.Local, LocalSize: l.LocalSize,
	}
	if l.Rank == 0 {
		var err error
		c.Bind, err = l.bindAddr()
		return c, err
	}
	c.Join = []string{l.Seed}
	towards, err := AddrTowards(l.Seed)
	if err == nil && towards.IsLoopback() && l.Nodes > 1 { // rank 0 is on this machine, and listens there only if it is told to
		var at netip.AddrPort
		at, err = l.bindAddr()
		towards, c.Join = at.Addr(), []string{at.String(), l.Seed}
	}
	c.Bind = netip.AddrPortFrom(towards, 0)
	return c, err
}

// bindAddr returns where rank 0 gossips: at the address of Seed, which must be this
// machine's. On rank 0's machine that may be a loopback address, because the launcher
// gives it one, or /etc/hosts has one for the machine's own name. Other machines need
// another one.
func (l *Launched) bindAddr() (netip.AddrPort, error) {
	host, service, err := net.SplitHostPort(l.Seed)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("cluster: address of rank 0: %w", err)
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("cluster: address of rank 0: %w", err)
	}
	addr, err := LocalAddr(host)
	if err == nil && addr.IsLoopback() && l.Nodes > 1 {
		addr, err = OwnAddr()
	}
	return netip.AddrPortFrom(addr, uint16(port)), err
}

// node returns a name for this machine: equal in all processes of the job on it, and
// different from those of other machines.
func (l *Launched) node() string {
	return fmt.Sprintf("%s-%s%02x", shortHostName(), l.digest()[:4], l.NodeRank)
}

// digest returns eight hex digits that identify the job.
func (l *Launched) digest() string { return fmt.Sprintf("%08x", l.hash()) }

// port returns rank 0's default gossip port: between 10000 and 29999, below the
// ephemeral ports.
func (l *Launched) port() int { return 10000 + int(l.hash()%20000) }

func (l *Launched) hash() uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(l.By + "\x00" + l.Job)) // a hash never fails
	return h.Sum32()
}

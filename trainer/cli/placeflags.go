package cli

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ringtrain/ringtrain/collective/calibration"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/tcp"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
)

// addPlace adds the flags of a command whose ranks may be on several machines.
// rank0 is what rank 0 does besides.
func addPlace(cmd *cobra.Command, f *crew.Place, rank0 string) {
	under(cmd, networkFlags, func(flags *pflag.FlagSet) {
		flags.IntVar(&f.Nodes, "nodes", 1, "run the job on `M` machines")
		flags.StringSliceVar(&f.Join, "join", nil, "join the job through `HOST:PORT`, which the first machine prints; several, separated by commas, are tried in turn")
		flags.DurationVar(&f.JoinTimeout, "join-timeout", crew.JoinTimeout, "exit with code 1 if machines of the job are still missing after `TIME`")
		flags.StringVar(&f.Rank0, "rank0", "", "put rank 0, which "+rank0+", on `NODE`: a host name, or a node name that ringtrain members shows (default the machine without --join)")
		flags.StringVar(&f.Bind, "bind", "", "`ADDRESS` or ADDRESS:PORT of this machine that the others can reach: an IP address or a host name (default port 7946 on the first of several machines, else any free port)")
		flags.StringVar(&f.Cluster, "cluster", "", "`NAME` of the job; jobs with different names ignore each other (default ringtrain with --nodes, else a random name)")
		flags.StringVar(&f.KeyFile, "key-file", "", "encrypt and authenticate all traffic with the key in `FILE`, made by ringtrain keygen and the same on every machine (default $"+cluster.EnvKeyFile+")")
		flags.BoolVar(&f.Insecure, "insecure", false, "do not warn that traffic between machines is neither encrypted nor authenticated")
		flags.StringVar(&f.Transport, "transport", cluster.TransportAuto, "exchange data by `KIND`: shm (shared memory), tcp, inproc (goroutines of one process), or auto (shm on one host, else tcp)")
		flags.IntVar(&f.Streams, "streams", 0, fmt.Sprintf("split large messages between two ranks over `N` TCP connections, 1 to %d, the same on every machine; try 4 where the network limits each connection (default %d)", tcp.MaxStreams, tcp.AutoStreams))
	})
}

// checkPlace checks these flags by themselves.
func checkPlace(flags *pflag.FlagSet, f *crew.Place) error {
	if err := f.Check(); err != nil {
		return err
	}
	if err := checkCalibration(); err != nil {
		return err
	}
	return checkEmpty(flags, "key-file", "join", "rank0", "bind", "cluster")
}

// checkCalibration checks the variable with which users choose how ranks share memory, which
// workers inherit.
func checkCalibration() error {
	if _, err := calibration.Parse(os.Getenv(cluster.EnvCalibration)); err != nil {
		return fmt.Errorf("%s: %w", cluster.EnvCalibration, err)
	}
	return nil
}

// adopt takes the job's shape from torchrun, Slurm or mpirun, if one of them started this
// process. They start a process per rank, so this one runs a single worker. flag is the flag
// for the number of workers on this machine.
func (a *app) adopt(f *crew.Place, workers *int, flag string, given func(string) bool) error {
	f.Process = a.process
	l := a.process.Launched
	if l == nil {
		return nil
	}
	switch {
	case given(flag) && *workers != l.LocalSize:
		return fmt.Errorf("--%s %d, but %s started %d processes on this machine, and each is a worker: leave --%s out", flag, *workers, l.By, l.LocalSize, flag)
	case given("nodes") && f.Nodes != l.Nodes:
		return fmt.Errorf("--nodes %d, but %s started the job on %s: leave --nodes out", f.Nodes, l.By, countOf(l.Nodes, "machine"))
	case given("join") && l.Nodes == 1:
		return fmt.Errorf("--join %s, but %s started the whole job on this machine: leave --join out", strings.Join(f.Join, ","), l.By)
	case given("rank0"):
		return fmt.Errorf("--rank0 %s, but %s has numbered the ranks: leave --rank0 out", f.Rank0, l.By)
	case f.Transport == crew.TransportInProcess:
		return fmt.Errorf("--transport inproc is one process, but %s started %d: start ringtrain without it", l.By, l.Size)
	}
	*workers, f.Nodes = l.LocalSize, l.Nodes
	a.shape = []string{"--" + flag + "=" + strconv.Itoa(l.LocalSize), "--nodes=" + strconv.Itoa(l.Nodes)}
	return nil
}

// identify decides whether this process is the launcher or a worker of its command.
func (a *app) identify() (err error) {
	if a.process, err = crew.ThisProcess(); err != nil {
		return usage(err)
	}
	return nil
}

// unlaunched refuses a command that starts its own workers under another launcher: each of
// that launcher's processes would start all of them.
func (a *app) unlaunched(command string) error {
	l := a.process.Launched
	if l == nil {
		return nil
	}
	return fmt.Errorf("%s starts its own workers, and %s has started %d processes: run it without %s", command, l.By, l.Size, l.By)
}

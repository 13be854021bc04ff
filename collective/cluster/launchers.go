package cluster

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
)

// A dialect has the variables in which a launcher passes a process its rank.
type dialect struct {
	by               string
	rank, size       string // set together by the launcher, and only by it
	local, localSize string
	node             string   // "" if the launcher does not say
	sizes            string   // processes of each machine, in Slurm's notation; replaces localSize
	hosts            string   // machines of the job, in Slurm's notation
	job              []string // together they name the job
	consecutive      string   // how to get consecutive ranks on a machine
}

// dialects returns the known launchers. Those that start other launchers come later:
// an mpirun inside a Slurm job counts as Open MPI.
func dialects() []dialect {
	return []dialect{{
		by: "torchrun", rank: "RANK", size: "WORLD_SIZE", local: "LOCAL_RANK", localSize: "LOCAL_WORLD_SIZE", node: "GROUP_RANK",
		job: []string{"TORCHELASTIC_RUN_ID"}, consecutive: "number the ranks machine by machine",
	}, {
		by: "Open MPI", rank: "OMPI_COMM_WORLD_RANK", size: "OMPI_COMM_WORLD_SIZE", local: "OMPI_COMM_WORLD_LOCAL_RANK", localSize: "OMPI_COMM_WORLD_LOCAL_SIZE",
		job: []string{"PMIX_NAMESPACE"}, consecutive: "use mpirun --map-by slot",
	}, {
		by: "Slurm", rank: "SLURM_PROCID", size: "SLURM_STEP_NUM_TASKS", local: "SLURM_LOCALID", sizes: "SLURM_STEP_TASKS_PER_NODE", node: "SLURM_NODEID",
		hosts: "SLURM_STEP_NODELIST", job: []string{"SLURM_JOB_ID", "SLURM_STEP_ID"}, consecutive: "use srun --distribution=block",
	}, {
		by: "MPICH", rank: "PMI_RANK", size: "PMI_SIZE", local: "MPI_LOCALRANKID", localSize: "MPI_LOCALNRANKS",
		consecutive: "number the ranks machine by machine (mpirun -ppn)",
	}}
}

// environment looks up a variable. It returns "" for one that is not set.
type environment func(string) string

// number reads a variable that must be a whole number of at least least.
func (env environment) number(name string, least int) (int, error) {
	text := env(name)
	n, err := strconv.Atoi(text)
	switch {
	case text == "":
		return 0, fmt.Errorf("%s is not set", name)
	case err != nil:
		return 0, fmt.Errorf("%s=%q is not a whole number", name, text)
	case n < least:
		return 0, fmt.Errorf("%s=%d is less than %d", name, n, least)
	}
	return n, nil
}

// read returns nil if the launcher's variables are not set.
func (d dialect) read(env environment) (*Launched, error) {
	if env(d.rank) == "" || env(d.size) == "" {
		return nil, d.half(env)
	}
	l := &Launched{By: d.by}
	var err error
	if l.Rank, err = env.number(d.rank, 0); err != nil {
		return nil, err
	}
	if l.Size, err = env.number(d.size, 1); err != nil {
		return nil, err
	}
	if l.Rank >= l.Size {
		return nil, fmt.Errorf("%s=%d, but %s=%d: ranks count from 0", d.rank, l.Rank, d.size, l.Size)
	}
	if l.Size == 1 {
		return l, nil
	}
	if err := d.machine(env, l); err != nil {
		return nil, err
	}
	l.Job = d.jobName(env)
	l.Seed, err = d.seed(env, l)
	return l, err
}

// half returns an error for a rank without a size, or a size without a rank. Slurm's
// batch scripts have a rank and no step, so there it is no mistake.
func (d dialect) half(env environment) error {
	set, unset := d.rank, d.size
	if env(set) == "" {
		set, unset = unset, set
	}
	if env(set) == "" || d.hosts != "" {
		return nil
	}
	return fmt.Errorf("%s is set and %s is not: set both, or unset %s to train without a launcher", set, unset, set)
}

// machine fills in the machine and the rank on it, and checks that ranks are
// numbered machine by machine, as ours are.
func (d dialect) machine(env environment, l *Launched) error {
	var err error
	if l.Local, l.LocalSize, err = d.localRank(env); err != nil {
		return err
	}
	var sizes []int // of the machines, if they may differ
	if d.sizes != "" {
		if l.NodeRank, err = env.number(d.node, 0); err != nil {
			return err
		}
		if sizes, err = taskCounts(env(d.sizes)); err != nil {
			return fmt.Errorf("%s: %w", d.sizes, err)
		}
		if l.NodeRank >= len(sizes) {
			return fmt.Errorf("%s=%d, but %s=%q lists %d machines", d.node, l.NodeRank, d.sizes, env(d.sizes), len(sizes))
		}
		l.LocalSize, l.Nodes = sizes[l.NodeRank], len(sizes)
	} else if err = d.evenly(env, l); err != nil {
		return err
	}
	first := l.NodeRank * l.LocalSize
	if sizes != nil {
		first = 0
		for _, n := range sizes[:l.NodeRank] {
			first += n
		}
	}
	switch {
	case l.Local >= l.LocalSize:
		return fmt.Errorf("%s=%d, but this machine has %d processes", d.local, l.Local, l.LocalSize)
	case l.Rank != first+l.Local:
		return fmt.Errorf("rank %d is process %d of machine %d, where rank %d was expected: the ranks of a machine must be consecutive: %s", l.Rank, l.Local, l.NodeRank, first+l.Local, d.consecutive)
	}
	return nil
}

// localRank reads the rank on the machine, and the number of its processes. Launchers of
// one process per machine set neither.
func (d dialect) localRank(env environment) (local, size int, err error) {
	if env(d.local) == "" {
		return 0, 1, nil
	}
	if local, err = env.number(d.local, 0); err != nil || d.localSize == "" {
		return local, 0, err
	}
	size, err = env.number(d.localSize, 1)
	return local, size, err
}

// evenly fills in machine and machines if all have the same number of processes.
func (d dialect) evenly(env environment, l *Launched) (err error) {
	l.Nodes, l.NodeRank = l.Size/l.LocalSize, l.Rank/l.LocalSize
	if d.node != "" && env(d.node) != "" {
		if l.NodeRank, err = env.number(d.node, 0); err != nil {
			return err
		}
	}
	if l.Nodes*l.LocalSize != l.Size {
		return fmt.Errorf("%d processes, %d of them on this machine: start the same number on every machine", l.Size, l.LocalSize)
	}
	return nil
}

// jobName identifies this job among others on its machines: by the launcher's name
// for it, and rank 0's address. If neither is set, the launcher has started all
// processes of the job on one machine, and its process number identifies it.
func (d dialect) jobName(env environment) string {
	name := ""
	for _, v := range append(d.job, "MASTER_ADDR", "MASTER_PORT") {
		name += env(v) + " "
	}
	if strings.TrimSpace(name) == "" {
		return strconv.Itoa(d.launcher(env))
	}
	return name
}

// launcher returns the process number of the launcher: the first ancestor without this
// process's rank. A script that the launcher runs for each rank has it, too.
func (d dialect) launcher(env environment) int {
	pid := os.Getppid()
	for pid > 1 && d.sameRank(env, environmentOf(pid)) {
		pid = parentOf(pid)
	}
	return pid
}

// sameRank reports whether two processes have the same place. All variables count: if a
// rank of one job starts another job, the launcher of that may have inherited some.
func (d dialect) sameRank(a, b environment) bool {
	for _, v := range []string{d.rank, d.size, d.local, d.localSize} {
		if v != "" && a(v) != b(v) {
			return false
		}
	}
	return true
}

// seed returns rank 0's gossip address.
func (d dialect) seed(env environment, l *Launched) (string, error) {
	host := "127.0.0.1"
	switch {
	case l.Nodes == 1:
	case env("MASTER_ADDR") != "":
		host = env("MASTER_ADDR")
	case d.hosts != "":
		if host = firstHost(env(d.hosts)); host == "" {
			return "", fmt.Errorf("%s=%q names no machine; set MASTER_ADDR to the address of the machine of rank 0", d.hosts, env(d.hosts))
		}
	default:
		return "", errors.New("the launcher does not say where rank 0 is; set MASTER_ADDR to an address of the machine of rank 0 in all processes (mpirun -x MASTER_ADDR or -genvlist MASTER_ADDR)")
	}
	port := l.port()
	if env("MASTER_PORT") != "" {
		var err error
		if port, err = env.number("MASTER_PORT", 1); err != nil {
			return "", err
		}
		if env("TORCHELASTIC_USE_AGENT_STORE") == "True" {
			port++ // torchrun itself listens at MASTER_PORT
		}
		if port > 65535 {
			return "", fmt.Errorf("MASTER_PORT=%s is too large", env("MASTER_PORT"))
		}
	}
	return net.JoinHostPort(host, strconv.Itoa(port)), nil
}

// taskCounts reads Slurm's list of counts: "2(x3),1" is 2, 2, 2, 1.
func taskCounts(text string) ([]int, error) {
	var counts []int
	for part := range strings.SplitSeq(text, ",") {
		number, times, repeated := strings.Cut(strings.TrimSuffix(part, ")"), "(x")
		n, err := strconv.Atoi(number)
		repeat := 1
		if err == nil && repeated {
			repeat, err = strconv.Atoi(times)
		}
		if err != nil || n < 1 || repeat < 1 || repeat > maxNodes {
			return nil, fmt.Errorf("%q is not a list of counts", text)
		}
		for range repeat {
			counts = append(counts, n)
		}
	}
	return counts, nil
}

// maxNodes bounds the machines that a variable can list.
const maxNodes = 1 << 16

// firstHost is the first name in Slurm's list of hosts: "a[03-07,9]b,c" begins
// with a03b.
func firstHost(list string) string {
	var name strings.Builder
	inside, skipping := false, false
	for _, r := range list {
		switch {
		case r == '[':
			inside, skipping = true, false
		case r == ']':
			inside, skipping = false, false
		case inside && (r == '-' || r == ','):
			skipping = true
		case r == ',':
			return name.String()
		case !skipping:
			name.WriteRune(r)
		}
	}
	return name.String()
}

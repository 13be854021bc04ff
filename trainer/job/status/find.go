package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// A Job says where to reach a running job, and what this machine knows about its
// workers.
type Job struct {
	Seeds   []string         // HOST:PORT of its processes
	Cluster string           // "" if the list of jobs does not have it
	Gossip  string           // name under which its processes gossip; "" if it is Cluster
	KeyFile string           // "" for none
	Parts   []launch.Listing // one for each launcher of the job on this machine
}

// maxSeeds is how many processes of a job are asked for its members. One is not enough,
// because it may be suspended.
const maxSeeds = 8

// jobsOf groups launchers by job: those that have agreed on the same view, and those that
// mpirun or the like started as one node.
func jobsOf(listings []launch.Listing) []Job {
	var jobs []Job
	for _, l := range listings {
		i := slices.IndexFunc(jobs, func(j Job) bool {
			return slices.ContainsFunc(j.Parts, func(part launch.Listing) bool {
				return l.Job != "" && part.Job == l.Job || part.Cluster == l.Cluster && part.Node == l.Node
			})
		})
		if i < 0 {
			i = len(jobs)
			jobs = append(jobs, Job{Cluster: l.Cluster, Gossip: l.Gossip, KeyFile: l.KeyFile})
		}
		jobs[i].Parts = append(jobs[i].Parts, l)
		jobs[i].Seeds = append(jobs[i].Seeds, gossipOf(l)...)
	}
	return jobs
}

// gossipOf returns the gossip addresses of a launcher's workers.
func gossipOf(l launch.Listing) (addrs []string) {
	for _, w := range l.Workers {
		if w.Gossip != "" {
			addrs = append(addrs, w.Gossip)
		}
	}
	return addrs
}

// Find returns the job that the user means. args holds addresses of its processes, or the
// name of its cluster, or nothing if it is the only job on this machine. name is the value
// of --cluster, or "".
func Find(ctx context.Context, args []string, name string, listings []launch.Listing) (Job, error) {
	jobs := jobsOf(listings)
	if len(args) == 1 && !strings.Contains(args[0], ":") {
		named := slices.DeleteFunc(jobs, func(j Job) bool { return j.Cluster != args[0] })
		if len(named) == 0 {
			return Job{}, fmt.Errorf("%q: no job of yours on this machine has that cluster name; use the HOST:PORT where a process of the job gossips", args[0])
		}
		return only(named, fmt.Sprintf("jobs on this machine are called %s", args[0]))
	}
	if len(args) == 0 {
		jobs = slices.DeleteFunc(jobs, func(j Job) bool { return name != "" && j.Cluster != name })
		if len(jobs) == 0 {
			which := "no job"
			if name != "" {
				which = "no job of cluster " + name
			}
			return Job{}, fmt.Errorf("%s of yours is running on this machine; add the HOST:PORT where a process of the job gossips", which)
		}
		return only(jobs, "jobs are running on this machine")
	}
	for _, seed := range args {
		if _, port, err := net.SplitHostPort(seed); err != nil || port == "" {
			return Job{}, fmt.Errorf("the address of a job must be HOST:PORT, where one of its processes gossips, not %q", seed)
		}
	}
	for _, job := range jobs {
		if slices.ContainsFunc(args, func(seed string) bool { return job.has(ctx, seed) }) {
			others := slices.DeleteFunc(job.Seeds, func(addr string) bool { return slices.Contains(args, addr) })
			job.Seeds = append(slices.Clone(args), others...)
			return job, nil
		}
	}
	return Job{Seeds: args}, nil
}

// has reports whether a process of the job gossips at a HOST:PORT.
func (j *Job) has(ctx context.Context, seed string) bool {
	host, port, _ := net.SplitHostPort(seed)
	same := slices.DeleteFunc(slices.Clone(j.Seeds), func(addr string) bool {
		_, its, _ := net.SplitHostPort(addr)
		return its != port
	})
	if len(same) == 0 {
		return false
	}
	ips, _ := net.DefaultResolver.LookupHost(ctx, host)
	return slices.ContainsFunc(ips, func(ip string) bool { return slices.Contains(same, net.JoinHostPort(ip, port)) })
}

// only returns the job if there is one, and an error with a list if there are several.
// many completes the sentence that begins with their number.
func only(jobs []Job, many string) (Job, error) {
	if len(jobs) == 1 {
		return jobs[0], nil
	}
	var list strings.Builder
	fmt.Fprintf(&list, "%d %s; choose one by its address:\n", len(jobs), many)
	writeJobs(&list, jobs)
	return Job{}, errors.New(strings.TrimRight(list.String(), "\n"))
}

// breaks keeps a command in one cell of a table.
var breaks = strings.NewReplacer("\t", " ", "\n", " ", "\v", " ", "\f", " ")

// writeJobs writes a table of jobs.
func writeJobs(w io.Writer, jobs []Job) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ADDRESS\tCLUSTER\tWORKERS\tSTARTED\tCOMMAND")
	for _, j := range jobs {
		workers := 0
		for _, part := range j.Parts {
			workers += len(part.Workers)
		}
		first := j.Parts[0]
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\t%s\n", j.Seeds[0], j.Cluster, workers, first.Started.Local().Format(time.DateTime), breaks.Replace(first.Command))
	}
	_ = t.Flush() // cannot fail: it writes to memory
}

// State returns the process id and state of a worker, if it runs on this machine.
func (j *Job) State(node string, local int) (pid int, s launch.State) {
	for _, part := range j.Parts {
		for _, w := range part.Workers {
			if part.Node == node && w.Local == local {
				return w.Process.PID, w.Process.State()
			}
		}
	}
	return 0, launch.Unknown
}

// AllStopped returns an error if no process can answer at seeds because all of them are
// suspended workers of this machine.
func (j *Job) AllStopped(seeds []string) error {
	var pids []string
	for _, part := range j.Parts {
		for _, w := range part.Workers {
			if !slices.Contains(seeds, w.Gossip) {
				continue
			}
			if w.Process.State() != launch.Stopped {
				return nil
			}
			pids = append(pids, strconv.Itoa(w.Process.PID))
		}
	}
	if pids == nil || len(pids) < len(seeds) {
		return nil
	}
	return fmt.Errorf("no worker can answer: all workers of the job on this machine are suspended; kill -CONT %s resumes them", strings.Join(pids, " "))
}

// Locate is Find among the jobs of this machine. It also returns the Config to watch the
// job with. clusterName and keyFile are the values of --cluster and --key-file, or "".
func Locate(ctx context.Context, args []string, clusterName, keyFile string) (job Job, c cluster.Config, err error) {
	if len(args) > 0 {
		args = strings.Split(strings.Join(args, ","), ",")
	}
	listings, unread := launch.Listings()
	if job, err = Find(ctx, args, clusterName, listings); err != nil {
		if len(listings) == 0 && unread != nil {
			err = fmt.Errorf("%w (%s)", err, strings.ReplaceAll(unread.Error(), "\n", "; "))
		}
		return job, c, err
	}
	job.Seeds = job.Seeds[:min(len(job.Seeds), max(len(args), maxSeeds))]
	c = cluster.Config{Cluster: cmp.Or(job.Gossip, clusterName, job.Cluster, crew.DefaultCluster), Join: job.Seeds, Node: cluster.NodeName()}
	if c.KeyFile = job.KeyFile; job.Cluster == "" || keyFile != "" {
		if c.KeyFile, err = crew.FindKey(keyFile); err != nil {
			return job, c, err
		}
	}
	c.Insecure = c.KeyFile == "" // the job decides whether traffic is encrypted, not its observer
	from, err := cluster.AddrTowards(job.Seeds[0])
	c.Bind = netip.AddrPortFrom(from, 0)
	return job, c, err
}

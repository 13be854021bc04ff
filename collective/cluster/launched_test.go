package cluster_test

import (
	"net/netip"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
)

type vars map[string]string

func (v vars) get(name string) string { return v[name] }

// The relevant variables of torchrun 2.15, Open MPI 4.1, srun 22.05 and MPICH 4.0.
func TestFromLauncher(t *testing.T) {
	torch := vars{"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "GROUP_RANK": "1", "GROUP_WORLD_SIZE": "2",
		"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500", "TORCHELASTIC_RUN_ID": "none"}
	for _, c := range []struct {
		name string
		vars vars
		want cluster.Launched // except Job
	}{
		{"torchrun", torch, cluster.Launched{By: "torchrun", Rank: 3, Size: 4, Local: 1, LocalSize: 2, NodeRank: 1, Nodes: 2, Seed: "10.0.0.1:29500"}},
		{"torchrun that listens itself", torch.with("TORCHELASTIC_USE_AGENT_STORE", "True"),
			cluster.Launched{By: "torchrun", Rank: 3, Size: 4, Local: 1, LocalSize: 2, NodeRank: 1, Nodes: 2, Seed: "10.0.0.1:29501"}},
		{"one process a machine", vars{"RANK": "1", "WORLD_SIZE": "3", "MASTER_ADDR": "job-0.svc", "MASTER_PORT": "23456"},
			cluster.Launched{By: "torchrun", Rank: 1, Size: 3, LocalSize: 1, NodeRank: 1, Nodes: 3, Seed: "job-0.svc:23456"}},
		{"Open MPI", vars{"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": "81395713"},
			cluster.Launched{By: "Open MPI", Rank: 1, Size: 2, Local: 1, LocalSize: 2, Nodes: 1, Seed: "127.0.0.1:14788"}},
		{"Open MPI on two machines", vars{"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": "7", "MASTER_ADDR": "a", "MASTER_PORT": "7000"},
			cluster.Launched{By: "Open MPI", Rank: 2, Size: 4, LocalSize: 2, NodeRank: 1, Nodes: 2, Seed: "a:7000"}},
		{"srun", vars{"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "7", "SLURM_LOCALID": "1", "SLURM_NODEID": "2", "SLURM_STEP_TASKS_PER_NODE": "2(x3),1", "SLURM_STEP_NUM_NODES": "4", "SLURM_STEP_NODELIST": "gpu[03-05,7]", "SLURM_JOB_ID": "42", "SLURM_STEP_ID": "0"},
			cluster.Launched{By: "Slurm", Rank: 5, Size: 7, Local: 1, LocalSize: 2, NodeRank: 2, Nodes: 4, Seed: "gpu03:20606"}},
		{"mpirun inside srun's job", vars{"SLURM_PROCID": "0", "OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": "1", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "MASTER_PORT": "7000"},
			cluster.Launched{By: "Open MPI", Rank: 1, Size: 2, Local: 1, LocalSize: 2, Nodes: 1, Seed: "127.0.0.1:7000"}},
		{"MPICH", vars{"PMI_RANK": "0", "PMI_SIZE": "2", "MPI_LOCALRANKID": "0", "MPI_LOCALNRANKS": "2", "MASTER_PORT": "7000"},
			cluster.Launched{By: "MPICH", Rank: 0, Size: 2, LocalSize: 2, Nodes: 1, Seed: "127.0.0.1:7000"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := cluster.FromLauncher(c.vars.get)
			require.NoError(t, err)
			require.NotNil(t, got)
			require.NotEmpty(t, got.Job)
			got.Job = ""
			require.Equal(t, c.want, *got)
		})
	}
}

func (v vars) with(name, value string) vars {
	out := vars{name: value}
	for k, old := range v {
		if k != name {
			out[k] = old
		}
	}
	return out
}

// Without a launcher, for one process, and in the script of a Slurm batch job, which
// is not a task of a step, there is no Launched.
func TestNoLauncher(t *testing.T) {
	for _, v := range []vars{{}, {"RANK": "0", "WORLD_SIZE": "1"}, {"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_ID": "1"}, {"MASTER_ADDR": "a"}} {
		got, err := cluster.FromLauncher(v.get)
		require.NoError(t, err)
		require.Nil(t, got, "%v", v)
	}
}

// Unusable variables are an error that names them.
func TestUnusableLauncher(t *testing.T) {
	torch := vars{"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1"}
	mpi := vars{"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "0", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}
	slurm := vars{"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "4", "SLURM_LOCALID": "0", "SLURM_NODEID": "1", "SLURM_STEP_TASKS_PER_NODE": "2(x2)", "SLURM_STEP_NODELIST": "a[1-2]"}
	for _, c := range []struct {
		vars vars
		want string
	}{
		{vars{"RANK": "1"}, "RANK is set and WORLD_SIZE is not"},
		{vars{"WORLD_SIZE": "2"}, "WORLD_SIZE is set and RANK is not"},
		{torch.with("RANK", "x"), `RANK="x" is not a whole number`},
		{torch.with("RANK", "4"), "ranks count from 0"},
		{torch.with("RANK", "-1"), "RANK=-1 is less than 0"},
		{torch.with("WORLD_SIZE", "5"), "start the same number on every machine"},
		{torch.with("LOCAL_RANK", "2"), "this machine has 2 processes"},
		{torch.with("LOCAL_WORLD_SIZE", ""), "LOCAL_WORLD_SIZE is not set"},
		{torch.with("MASTER_PORT", "99999"), "MASTER_PORT=99999 is too large"},
		{torch.with("GROUP_RANK", "1"), "must be consecutive"},
		{torch.with("MASTER_ADDR", ""), "(mpirun -x MASTER_ADDR or -genvlist MASTER_ADDR)"},
		{mpi, "mpirun --map-by slot"},
		{mpi.with("OMPI_COMM_WORLD_RANK", "2"), "mpirun -x MASTER_ADDR"},
		{slurm, "srun --distribution=block"},
		{slurm.with("SLURM_STEP_TASKS_PER_NODE", "2(x"), "is not a list of counts"},
		{slurm.with("SLURM_NODEID", "2"), "lists 2 machines"},
		{slurm.with("SLURM_PROCID", "2").with("SLURM_STEP_NODELIST", ""), "set MASTER_ADDR"},
	} {
		_, err := cluster.FromLauncher(c.vars.get)
		require.ErrorContains(t, err, c.want, "%v", c.vars)
		require.ErrorContains(t, err, "cluster: started by ")
	}
}

// All processes of a job agree on its name and on rank 0's address. Another job of
// the same launcher has different ones.
func TestLaunchedConfig(t *testing.T) {
	of := func(job, rank string) cluster.Config {
		v := vars{"OMPI_COMM_WORLD_RANK": rank, "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_RANK": rank, "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "PMIX_NAMESPACE": job}
		l, err := cluster.FromLauncher(v.get)
		require.NoError(t, err)
		c, err := l.Config()
		require.NoError(t, err)
		return c
	}
	first, second, other := of("1", "0"), of("1", "1"), of("2", "0")
	require.Empty(t, first.Join)
	require.Equal(t, []string{first.Bind.String()}, second.Join)
	require.Equal(t, first.Cluster, second.Cluster)
	require.Equal(t, first.Node, second.Node)
	require.Zero(t, second.Bind.Port())
	require.Equal(t, []int{0, 1}, []int{first.Local, second.Local})
	require.Equal(t, 2, first.LocalSize)
	require.Zero(t, first.NodeRank)
	require.NotEqual(t, first.Cluster, other.Cluster)
	require.NotEqual(t, first.Bind, other.Bind)
}

// If rank 0's address is loopback on its machine, other machines need another one. All
// processes of rank 0's machine join there too, even if the launcher counts two machines.
func TestLaunchedLoopback(t *testing.T) {
	own, err := cluster.OwnAddr()
	if err != nil {
		t.Skip(err)
	}
	for _, host := range []string{"127.0.0.1", "127.0.1.1", "localhost"} {
		for rank := range 4 {
			l, err := cluster.FromLauncher(vars{"RANK": strconv.Itoa(rank), "WORLD_SIZE": "4", "LOCAL_RANK": strconv.Itoa(rank % 2),
				"LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": host, "MASTER_PORT": "7000"}.get)
			require.NoError(t, err)
			c, err := l.Config()
			require.NoError(t, err)
			require.Equal(t, own, c.Bind.Addr(), "rank %d at %s", rank, host)
			if rank == 0 {
				require.Equal(t, netip.AddrPortFrom(own, 7000), c.Bind)
				require.Empty(t, c.Join)
			} else {
				require.Equal(t, netip.AddrPortFrom(own, 7000).String(), c.Join[0])
			}
		}
	}
}

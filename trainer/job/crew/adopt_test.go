package crew

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
)

// launchedAs returns the Place of process rank of a job that mpirun started on nodes
// machines with two processes each, and where rank 0 gossips.
func launchedAs(t *testing.T, rank, nodes int) (p Place, seed string) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	seed = free.Addr().String()
	require.NoError(t, free.Close())
	p = Local()
	p.Nodes = nodes
	p.Process.Launched = &cluster.Launched{
		By: "Open MPI", Job: "7", Rank: rank, Size: 2 * nodes, Local: rank % 2, LocalSize: 2, NodeRank: rank / 2, Nodes: nodes, Seed: seed,
	}
	return p, seed
}

// Under mpirun each process takes the place that it was given: rank 0 gossips where the
// others look for it, and all agree on the names of the job and of their machine.
func TestConfigUnderMpirun(t *testing.T) {
	t.Setenv(cluster.EnvKeyFile, "")
	var names []string
	for rank := range 4 {
		p, seed := launchedAs(t, rank, 2)
		p.Streams = 3
		p.Bind = "127.0.0.1" // else an address that other machines reach, which this one may lack
		c, err := p.Config(2, io.Discard)
		require.NoError(t, err)
		require.Equal(t, []int{rank % 2, rank / 2, 2, 2, 3}, []int{c.Local, c.NodeRank, c.LocalSize, c.Nodes, c.Streams})
		names = append(names, c.Cluster, c.Node)
		if rank == 0 {
			require.Empty(t, c.Join)
			require.Equal(t, seed, c.Bind.String())
			continue
		}
		require.Contains(t, c.Join, seed)
		require.Equal(t, "127.0.0.1:0", c.Bind.String())
	}
	require.Equal(t, names[0], names[6], "one cluster")
	require.Equal(t, names[1], names[3], "ranks 0 and 1 share a machine")
	require.NotEqual(t, names[1], names[5], "rank 2 is on another")
}

// --bind changes the address of a process under mpirun, but not the port: rank 0 keeps the
// one that the others dial, and processes of one machine do not take each other's.
func TestBindUnderMpirun(t *testing.T) {
	t.Setenv(cluster.EnvKeyFile, "")
	for rank := range 2 {
		for nodes := range 2 {
			p, seed := launchedAs(t, rank, nodes+1)
			p.Bind = "127.0.0.1"
			c, err := p.Config(2, io.Discard)
			require.NoError(t, err)
			if rank == 0 {
				require.Equal(t, seed, c.Bind.String())
			} else {
				require.Zero(t, c.Bind.Port())
			}
		}
	}
	p, _ := launchedAs(t, 0, 1)
	p.Bind = "127.0.0.1/8"
	_, err := p.Config(2, io.Discard)
	require.ErrorContains(t, err, "--bind ")
}

// Flags take precedence over the variables of mpirun.
func TestFlagsUnderMpirun(t *testing.T) {
	t.Setenv(cluster.EnvKeyFile, "")
	p, _ := launchedAs(t, 3, 2)
	p.Join, p.Cluster = []string{"127.0.0.1:9"}, "mine"
	c, err := p.Config(2, io.Discard)
	require.NoError(t, err)
	require.Equal(t, []string{"127.0.0.1:9"}, c.Join)
	require.Equal(t, "mine", c.Cluster)
	require.Equal(t, 1, c.NodeRank, "its machine's, not that of a machine that joins")
	p, _ = launchedAs(t, 0, 1)
	p.Process.Launched.Seed = "nowhere"
	_, err = p.Config(2, io.Discard)
	require.ErrorContains(t, err, "address of rank 0")
}

// The user is warned once if others can read the traffic, unless --insecure is set.
func TestWarning(t *testing.T) {
	t.Setenv(cluster.EnvKeyFile, "")
	own, err := cluster.OwnAddr()
	if err != nil {
		t.Skip("this machine has only loopback: ", err)
	}
	key := filepath.Join(t.TempDir(), "job.key")
	require.NoError(t, os.WriteFile(key, []byte(strings.Repeat("a", 64)+"\n"), 0o600))
	for _, c := range []struct {
		name   string
		change func(*Place)
		warned bool
	}{
		{"open", func(*Place) {}, true},
		{"insecure", func(p *Place) { p.Insecure = true }, false},
		{"key", func(p *Place) { p.KeyFile = key }, false},
		{"loopback", func(p *Place) { p.Bind = "127.0.0.1:0" }, false},
		{"rank 1 of mpirun", func(p *Place) {
			p.Process.Launched = &cluster.Launched{Rank: 1, Size: 2, LocalSize: 2, Nodes: 1, Seed: "127.0.0.1:9"}
		}, false},
	} {
		p := Local()
		p.Nodes, p.Bind = 2, own.String()+":0"
		c.change(&p)
		var said strings.Builder
		config, err := p.Config(1, &said)
		require.NoError(t, err, c.name)
		require.Equal(t, config.KeyFile == "", config.Insecure, "the warning is all that --insecure changes")
		if c.warned {
			require.Equal(t, "ringtrain: warning: traffic on "+own.String()+" is neither encrypted nor authenticated, and workers accept connections on every address of this machine; make a key with ringtrain keygen (--key-file), or use a network that you trust (--insecure to silence this warning)\n", said.String())
		} else {
			require.Empty(t, said.String(), c.name)
		}
	}
}

// The first of several machines has a port that others can guess. The others bind the
// address from which they reach it.
func TestChosenAddress(t *testing.T) {
	p := Local()
	p.Nodes, p.Join = 2, []string{"127.0.0.1:7946"}
	at, err := p.bindAddress()
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:0", at.String())
	p.Join = []string{"127.0.0.1:nosuchservice", "127.0.0.1:7946"}
	at, err = p.bindAddress()
	require.NoError(t, err, "one address is enough")
	require.Equal(t, "127.0.0.1:0", at.String())
	p.Join = p.Join[:1]
	_, err = p.bindAddress()
	require.ErrorContains(t, err, "nosuchservice")
	p.Bind = "10.0.0.1"
	at, err = p.bindAddress()
	require.NoError(t, err)
	require.Equal(t, "10.0.0.1:0", at.String())
	p.Join = nil
	at, err = p.bindAddress()
	require.NoError(t, err)
	require.Equal(t, "10.0.0.1:7946", at.String())
	p.Bind = "localhost"
	at, err = p.bindAddress()
	require.NoError(t, err, "a test of several machines on one")
	require.True(t, at.Addr().IsLoopback())
}

// Rank 0's launcher shows the job. Both kinds of process know the job's shape.
func TestShape(t *testing.T) {
	p := Process{Launched: &cluster.Launched{Rank: 2, LocalSize: 3, Nodes: 4}}
	require.True(t, p.Follows())
	workers, nodes, told := p.Shape()
	require.Equal(t, []any{3, 4, true}, []any{workers, nodes, told})
	p.Launched.Rank = 0
	require.False(t, p.Follows())
	alone := Process{isWorker: true, place: cluster.Config{LocalSize: 2}}
	workers, nodes, told = alone.Shape()
	require.Equal(t, []any{2, 1, true}, []any{workers, nodes, told}, "no machines means this one")
}

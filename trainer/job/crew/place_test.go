package crew

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
)

func TestPlaceCheck(t *testing.T) {
	for _, c := range []struct {
		change func(*Place)
		want   string
	}{
		{func(*Place) {}, ""},
		{func(p *Place) { p.Nodes, p.Join, p.Rank0, p.Streams = MaxRanks, []string{"a:1"}, "n", 1 }, ""},
		{func(p *Place) { p.Transport = TransportInProcess }, ""},
		{func(p *Place) { p.Transport = "" }, "--transport must be one of auto, tcp, shm, inproc, not \"\""},
		{func(p *Place) { p.Streams = -1 }, "--streams must be from 1 to 8, or 0 for the default of 1, not -1"},
		{func(p *Place) { p.Streams = 9 }, "--streams must be from 1 to 8, or 0 for the default of 1, not 9"},
		{func(p *Place) { p.Nodes = 0 }, "--nodes must be at least 1"},
		{func(p *Place) { p.Nodes = MaxRanks + 1 }, "--nodes must be at most 8192, not 8193"},
		{func(p *Place) { p.JoinTimeout = 0 }, "--join-timeout must be greater than 0, not 0s"},
		{func(p *Place) { p.JoinTimeout = -1 }, "--join-timeout must be greater than 0, not -1ns"},
		{func(p *Place) { p.Join = []string{"a:1"} }, "--join needs --nodes"},
		{func(p *Place) { p.Rank0 = "n" }, "--rank0 needs --nodes"},
		{func(p *Place) { p.Transport, p.Nodes = TransportInProcess, 2 }, "it cannot be combined with --nodes, --join or --streams"},
		{func(p *Place) { p.Transport, p.Join = TransportInProcess, []string{"a:1"} }, "it cannot be combined with --nodes, --join or --streams"},
		{func(p *Place) { p.Transport, p.Streams = TransportInProcess, 2 }, "it cannot be combined with --nodes, --join or --streams"},
		{func(p *Place) { p.Transport, p.Bind = TransportInProcess, "127.0.0.1" }, "it cannot be combined with --bind or --cluster"},
		{func(p *Place) { p.Transport, p.Cluster = TransportInProcess, "c" }, "it cannot be combined with --bind or --cluster"},
		{func(p *Place) { p.Transport, p.KeyFile = TransportInProcess, "k" }, "it cannot be combined with --key-file"},
	} {
		p := Local()
		c.change(&p)
		if c.want == "" {
			require.NoError(t, p.Check())
		} else {
			require.ErrorContains(t, p.Check(), c.want)
		}
	}
	require.NoError(t, CheckWorkers(MaxLocal, 8))
	require.EqualError(t, CheckWorkers(MaxLocal+1, 1), "--workers must be at most 1024 on one machine, not 1025")
	require.EqualError(t, CheckWorkers(MaxLocal, 9), "9 machines with --workers 1024 are more than 8192 ranks")
}

// A job on one machine gets a unique name and a free port of loopback, without a warning.
func TestConfigOfThisMachine(t *testing.T) {
	t.Setenv(cluster.EnvKeyFile, "")
	p := Local()
	var said strings.Builder
	a, err := p.Config(3, &said)
	require.NoError(t, err)
	b, err := p.Config(3, &said)
	require.NoError(t, err)
	require.Regexp(t, `^ringtrain-[0-9a-f]{8}$`, a.Cluster)
	require.NotEqual(t, a.Cluster, b.Cluster)
	require.True(t, a.Bind.Addr().IsLoopback())
	require.Zero(t, a.Bind.Port())
	require.Equal(t, 3, a.LocalSize)
	require.True(t, a.Insecure)
	require.Empty(t, said.String())
	p.Cluster = "mine"
	a, err = p.Config(1, &said)
	require.NoError(t, err)
	require.Equal(t, "mine", a.Cluster)
}

func TestConfigOfSeveralMachines(t *testing.T) {
	t.Setenv(cluster.EnvKeyFile, "")
	p := Local()
	p.Nodes, p.Bind = 2, "127.0.0.1:0"
	var said strings.Builder
	c, err := p.Config(1, &said)
	require.NoError(t, err)
	require.True(t, p.First())
	require.Empty(t, c.Cluster, "the launcher sets the default")
	require.Zero(t, c.NodeRank)
	p.Join = []string{"127.0.0.1:7946", "h:1"}
	c, err = p.Config(1, &said)
	require.NoError(t, err)
	require.False(t, p.First())
	require.Equal(t, 1, c.NodeRank, "ranked after the machine that it joins")
	require.Equal(t, p.Join, c.Join)
	for _, seed := range []string{"", "host", "host:", ":7946", "host:0", "a:b:c"} {
		p.Join = []string{"127.0.0.1:7946", seed}
		_, err := p.Config(1, &said)
		require.EqualError(t, err, "--join must be HOST:PORT, the address that the first machine prints, not "+strconv.Quote(seed))
	}
}

// A port that is in use, and an address of another machine, are errors before any worker
// is started.
func TestBindIsTried(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	p := Local()
	p.Bind = taken.Addr().String()
	inUse := fmt.Sprintf("--bind %s: another process uses port %d; choose another port", p.Bind, taken.Addr().(*net.TCPAddr).Port)
	_, err = p.Config(1, nil)
	require.EqualError(t, err, inUse+", or give only the address to use any free port")
	p.Nodes = 2
	_, err = p.Config(1, nil)
	require.EqualError(t, err, inUse, "on the first of several machines, an address alone means the default port")
	p.Nodes = 1
	datagrams, err := net.ListenPacket("udp", "127.0.0.1:0")
	require.NoError(t, err)
	defer datagrams.Close()
	p.Bind = datagrams.LocalAddr().String()
	_, err = p.Config(1, nil)
	require.ErrorContains(t, err, "another process uses port", "gossip also needs UDP")
	p.Bind = "192.0.2.1" // reserved for documentation
	_, err = p.Config(1, nil)
	require.EqualError(t, err, "--bind 192.0.2.1: this machine has no such address", "the address as given, without a port")
}

// The key file comes from the flag, or else from the environment. It is read before
// anything starts.
func TestFindKey(t *testing.T) {
	t.Setenv(cluster.EnvKeyFile, "")
	path, err := FindKey("")
	require.NoError(t, err)
	require.Empty(t, path)
	missing := filepath.Join(t.TempDir(), "job.key")
	_, err = FindKey(missing)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "--key-file: ")
	t.Setenv(cluster.EnvKeyFile, missing)
	_, err = FindKey("")
	require.ErrorContains(t, err, cluster.EnvKeyFile+": ")
	require.NoError(t, os.WriteFile(missing, []byte("short"), 0o600))
	_, err = FindKey("")
	require.ErrorContains(t, err, cluster.EnvKeyFile+": ")
}

//go:build unix

package status

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// ownRegistry gives this test a registry of jobs of its own.
func ownRegistry(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", dir)
	t.Setenv("TMPDIR", dir)
	t.Setenv(cluster.EnvKeyFile, "")
}

// register lists a job of this process whose workers gossip at addrs.
func register(t *testing.T, l launch.Listing) {
	l.Launcher, l.Started = launch.Self(), time.Now()
	r, err := launch.Register(l)
	require.NoError(t, err)
	t.Cleanup(func() { _ = r.Remove() })
}

func key(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "job.key")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("a", 64)+"\n"), 0o600))
	return path
}

// Without arguments the only job of this machine is found, with its name and its key. A
// few of many workers are enough to reach it.
func TestLocate(t *testing.T) {
	ownRegistry(t)
	path := key(t)
	many := launch.Listing{Cluster: "c", Node: "n", KeyFile: path}
	for i := range 20 {
		many.Workers = append(many.Workers, launch.Listed{Local: i, Gossip: fmt.Sprintf("127.0.0.1:%d", 100+i)})
	}
	register(t, many)
	job, c, err := Locate(t.Context(), nil, "", "")
	require.NoError(t, err)
	require.Len(t, job.Seeds, maxSeeds)
	require.Equal(t, job.Seeds, c.Join)
	require.Equal(t, "c", c.Cluster)
	require.Equal(t, path, c.KeyFile)
	require.False(t, c.Insecure)
	require.True(t, c.Bind.Addr().IsLoopback())

	many.Gossip = "c.1"
	require.Equal(t, "c.1", jobsOf([]launch.Listing{many})[0].Gossip)

	job, c, err = Locate(t.Context(), []string{"127.0.0.1:119,127.0.0.1:118"}, "", "")
	require.NoError(t, err)
	require.Equal(t, []string{"127.0.0.1:119", "127.0.0.1:118"}, job.Seeds[:2], "those of the user come first")
	require.Len(t, c.Join, maxSeeds)

	_, c, err = Locate(t.Context(), nil, "c", key(t))
	require.NoError(t, err)
	require.NotEqual(t, path, c.KeyFile, "the flag takes precedence")
}

// A job of another machine is reached with what the flags say.
func TestLocateElsewhere(t *testing.T) {
	ownRegistry(t)
	path := key(t)
	for _, x := range []struct{ cluster, keyFile, wantCluster, wantKey string }{
		{"", "", crew.DefaultCluster, ""},
		{"mine", path, "mine", path},
	} {
		job, c, err := Locate(t.Context(), []string{"127.0.0.1:9"}, x.cluster, x.keyFile)
		require.NoError(t, err)
		require.Equal(t, []string{"127.0.0.1:9"}, job.Seeds)
		require.Empty(t, job.Parts)
		require.Equal(t, x.wantCluster, c.Cluster)
		require.Equal(t, x.wantKey, c.KeyFile)
		require.Equal(t, x.wantKey == "", c.Insecure)
	}
	t.Setenv(cluster.EnvKeyFile, path)
	_, c, err := Locate(t.Context(), []string{"127.0.0.1:9"}, "", "")
	require.NoError(t, err)
	require.Equal(t, path, c.KeyFile)
	_, _, err = Locate(t.Context(), []string{"127.0.0.1:9"}, "", path+"2")
	require.ErrorContains(t, err, "--key-file: ")
	_, _, err = Locate(t.Context(), []string{"127.0.0.1:9", ""}, "", "")
	require.ErrorContains(t, err, `must be HOST:PORT, where one of its processes gossips, not ""`)
}

// Without a job the error says what to add. A registry that cannot be read is named in it,
// because a job may be there.
func TestLocateAbsent(t *testing.T) {
	ownRegistry(t)
	_, _, err := Locate(t.Context(), nil, "", "")
	require.EqualError(t, err, "no job of yours is running on this machine; add the HOST:PORT where a process of the job gossips")
	dir := os.Getenv("XDG_RUNTIME_DIR")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "ringtrain"), nil, 0o600))
	_, _, err = Locate(t.Context(), nil, "", "")
	require.ErrorContains(t, err, "gossips (launch: reading the registry of jobs: ")
	require.NotContains(t, err.Error(), "\n")
}

// A job whose launcher has died is not there: its entry is removed.
func TestLocateDead(t *testing.T) {
	ownRegistry(t)
	dead := launch.Self()
	dead.Start++
	r, err := launch.Register(launch.Listing{Launcher: dead, Cluster: "c", Workers: []launch.Listed{{Gossip: "127.0.0.1:1"}}})
	require.NoError(t, err)
	_, _, err = Locate(t.Context(), nil, "c", "")
	require.ErrorContains(t, err, "no job of cluster c of yours is running")
	require.NoError(t, r.Remove(), "removing it twice is fine")
}

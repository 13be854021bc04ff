package bench

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/secret"
	"github.com/ringtrain/ringtrain/trainer/job"
	"github.com/ringtrain/ringtrain/trainer/job/crew"
	"github.com/ringtrain/ringtrain/trainer/launch"
)

// keyFile writes a key and returns its path.
func keyFile(t *testing.T) string {
	t.Helper()
	path, remove, err := temporaryKey()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, remove()) })
	return path
}

// Traffic in network namespaces is encrypted unless the user refuses: with the named key,
// or that of the environment, or a fresh one.
func TestPlanNetwork(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	named, inherited := keyFile(t), keyFile(t)
	for _, c := range []struct {
		name        string
		key         string
		environment string
		insecure    bool
		want        networkPlan
	}{
		{"no key", "", "", false, networkPlan{fresh: true}},
		{"a named key", named, inherited, false, networkPlan{key: named}},
		{"the key of the environment", "", inherited, false, networkPlan{key: inherited}},
		{"insecure", "", "", true, networkPlan{}},
		{"insecure in spite of the environment", "", inherited, true, networkPlan{}},
		{"insecure in spite of a broken environment", "", "nosuch.key", true, networkPlan{}},
		{"insecure with a key", named, "", true, networkPlan{key: named}},
	} {
		t.Setenv(cluster.EnvKeyFile, c.environment)
		p, err := planNetwork(c.key, c.insecure, "")
		require.NoError(t, err, c.name)
		require.Equal(t, c.want, p, c.name)
	}
	p, err := planNetwork("", true, "2.5gbit")
	require.NoError(t, err)
	require.Equal(t, launch.NetworkOptions{Link: 2_500_000_000}, p.limits)
}

// A mistake in the key or the rate says which flag is wrong.
func TestPlanNetworkMistakes(t *testing.T) {
	t.Setenv(cluster.EnvKeyFile, "")
	missing := filepath.Join(t.TempDir(), "none.key")
	_, err := planNetwork(missing, false, "")
	require.ErrorContains(t, err, "--key-file: key file "+missing+": no such file or directory; make one with ringtrain keygen ")
	_, err = planNetwork("", false, "fast")
	require.EqualError(t, err, `--link: rate must be a number with a unit (bit, kbit, mbit, gbit or tbit) such as 2.5gbit, not "fast"`)
	t.Setenv(cluster.EnvKeyFile, missing)
	_, err = planNetwork("", false, "")
	require.ErrorContains(t, err, cluster.EnvKeyFile+": key file "+missing)
}

// A machine without the programs that make namespaces cannot have them. That is a mistake
// of the user, and no key is left behind.
func TestOpenNetworkWithoutPrograms(t *testing.T) {
	t.Setenv("PATH", "")
	t.Setenv("TMPDIR", t.TempDir())
	t.Setenv(cluster.EnvKeyFile, "")
	_, _, _, err := networkPlan{fresh: true}.open(t.Context(), 2)
	require.ErrorIs(t, err, launch.ErrNoNamespaces)
	require.ErrorContains(t, err, "--hosts netns: ")
	var usage *crew.UsageError
	require.ErrorAs(t, err, &usage)
	require.Error(t, (&CollectiveRun{Ranks: 2, Hosts: Namespaces}).Launch(t.Context(), job.Options{}))
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// A network comes with its key, and both go together.
func TestOpenNetwork(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	network, key, done, err := networkPlan{fresh: true, limits: launch.NetworkOptions{Link: 1e9}}.open(t.Context(), 2)
	if err != nil {
		require.ErrorIs(t, err, launch.ErrNoNamespaces)
		t.Skip(err)
	}
	counters, err := network.Counters()
	require.NoError(t, err)
	require.Len(t, counters, 2)
	_, err = secret.ReadFile(key)
	require.NoError(t, err)
	require.NoError(t, done())
	require.NoFileExists(t, key)
	_, err = network.Counters()
	require.Error(t, err, "the network is gone")

	mine := keyFile(t)
	_, key, done, err = networkPlan{key: mine}.open(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, mine, key)
	require.NoError(t, done())
	require.FileExists(t, mine, "the user's key stays")
}

// The report says where the workers run and whether others can read their traffic.
func TestScalingWhere(t *testing.T) {
	for where, f := range map[string]*ScalingRun{
		"workers on one machine, ":                                               {Hosts: "local", Transport: "auto"},
		"workers on one machine, over loopback, ":                                {Hosts: "local", Transport: "tcp"},
		"each worker in a network namespace of one machine, no limit each way, ": {Hosts: Namespaces, Transport: "auto"},
		"each worker in a network namespace of one machine, 500mbit each way, ":  {Hosts: Namespaces, Transport: "tcp", Link: "500mbit"},
	} {
		require.Equal(t, where+"no TLS", f.where(false))
		require.Equal(t, where+"TLS 1.3", f.where(true))
	}
	r := (&ScalingRun{Hosts: "local", Compute: Compute{Flag: "emulate:5ms"}, Steps: 7, Outputs: Outputs{Published: true}}).report("ringtrain bench scaling", &job.Training{Batch: 32}, false)
	require.Regexp(t, `^\d{4}-\d\d-\d\d$`, r.Date)
	require.Regexp(t, `^\S+ \(\d+ processors, \w+/\w+\)$`, r.Host)
	require.Equal(t, Scaling{Command: "ringtrain bench scaling", Date: r.Date, Host: r.Host, Compute: "emulate:5ms", Where: "workers on one machine, no TLS", Batch: 32, Steps: 7, Processors: runtime.NumCPU(), Published: true}, r)
}

// Workers in namespaces have a cluster of their own, TCP, and the key of the network.
// Others share the network of this machine.
func TestTrialJoinsAt(t *testing.T) {
	t.Setenv(cluster.EnvKeyFile, "")
	f := &ScalingRun{Hosts: Namespaces, Transport: "auto"}
	r := &trials{ScalingRun: f, network: &launch.Network{}, key: "a.key", options: job.Options{}.WithDefaults()}
	first, err := r.joinAt(3)
	require.NoError(t, err)
	second, err := r.joinAt(3)
	require.NoError(t, err)
	require.NotEqual(t, first.Cluster, second.Cluster, "a trial does not meet workers of the one before")
	require.Equal(t, cluster.Config{Cluster: first.Cluster, Nodes: 1, Node: first.Node, LocalSize: 3, Transport: "tcp", KeyFile: "a.key"}, first)
	r.key = ""
	first, err = r.joinAt(1)
	require.NoError(t, err)
	require.True(t, first.Insecure)

	r.network, f.Hosts = nil, "local"
	at, err := r.joinAt(2)
	require.NoError(t, err)
	require.Equal(t, []any{2, "auto", "", true}, []any{at.LocalSize, at.Transport, at.KeyFile, at.Insecure})
	require.True(t, at.Bind.Addr().IsLoopback())
	f.KeyFile = filepath.Join(t.TempDir(), "none.key")
	_, err = r.joinAt(2)
	require.ErrorContains(t, err, "--key-file: ")
	_, err = r.train(t.Context(), "allreduce", 2)
	var usage *crew.UsageError
	require.ErrorAs(t, err, &usage)
}

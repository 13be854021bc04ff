package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/membership"
	"github.com/ringtrain/ringtrain/collective/secret"
)

func newKey(t testing.TB) *secret.Key {
	k := secret.New()
	return &k
}

// Two machines with one key make a group. A third with a different key, or none,
// fails without disturbing them.
func TestKey(t *testing.T) {
	key := newKey(t)
	path := filepath.Join(t.TempDir(), "key")
	require.NoError(t, secret.WriteFile(path, *key))
	var said bytes.Buffer // read after everything has ended
	base := cluster.Config{Cluster: t.Name(), Nodes: 2}
	c := base
	c.Node, c.Key = "a", key
	first := start(t, c, 2)
	seed := []string{first[0].Addr().String()}

	for says, k := range map[string]*secret.Key{"has a different key": newKey(t), "has a key, and this process has none": nil} {
		stranger := base
		stranger.Node, stranger.Key, stranger.Join = "x", k, seed
		x := start(t, stranger, 1)
		_, err := x[0].Group(deadline(t))
		require.ErrorIs(t, err, membership.ErrKey)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, "give both the same key file")
		fmt.Fprintln(&said, err)
	}
	c.Node, c.Key, c.KeyFile, c.Join = "b", nil, path, seed // the same key, from a file
	gs := groups(t, append(first, start(t, c, 1)...))
	require.Equal(t, 3, gs[0].Size())
	collectivetest.Run(t, gs, func(ctx context.Context, g *collective.Group) {
		s := []int64{1}
		assert.NoError(t, collective.AllReduce(ctx, g, s, collective.Sum))
		assert.Equal(t, []int64{3}, s)
	})
	fmt.Fprintf(&said, "%+v %#v %v", c, base, c.Environ())
	c.Key = key
	fmt.Fprintf(&said, "%+v %v %v", c, &c, c.Environ())
	slog.New(slog.NewTextHandler(&said, nil)).Info("x", "config", c)
	require.NotContains(t, said.String(), key.Text()[:8])
}

func TestNoKey(t *testing.T) {
	beyond := cluster.Config{Bind: netip.MustParseAddrPort("192.0.2.1:0")} // an address that no machine has
	_, err := cluster.Join(deadline(t), beyond)
	require.ErrorIs(t, err, cluster.ErrNoKey)
	require.ErrorContains(t, err, "make a key with ringtrain keygen, or give --insecure")
	for _, allowed := range []cluster.Config{{Bind: beyond.Bind, Insecure: true}, {Bind: beyond.Bind, Key: newKey(t)}} {
		_, err = cluster.Join(deadline(t), allowed)
		require.Error(t, err, "the address")
		require.NotErrorIs(t, err, cluster.ErrNoKey)
	}
	local := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")}
	_, err = cluster.Join(deadline(t), cluster.Config{DataAddrs: local})
	require.ErrorIs(t, err, cluster.ErrNoKey, "the data plane would listen on all addresses")
	n, err := cluster.Join(deadline(t), cluster.Config{DataAddrs: local[:1]})
	require.NoError(t, err)
	require.NoError(t, n.Close())
	_, err = cluster.Join(deadline(t), cluster.Config{KeyFile: filepath.Join(t.TempDir(), "none")})
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = cluster.Join(deadline(t), cluster.Config{Key: new(secret.Key)})
	require.ErrorIs(t, err, secret.ErrNotKey)
}

// All mistakes of a Config are in one line, and errors.Is still finds each.
func TestMistakesInOneLine(t *testing.T) {
	_, err := cluster.Join(deadline(t), cluster.Config{Cluster: t.Name(), Node: "a\nb", ConnectTime: -1, Bind: netip.MustParseAddrPort("192.0.2.1:0")})
	require.ErrorIs(t, err, cluster.ErrNoKey)
	require.ErrorContains(t, err, `node name "a\nb" must not contain control characters; ConnectTime must be at least 0, not -1ns; no key`)
	require.NotContains(t, err.Error(), "\n")
}

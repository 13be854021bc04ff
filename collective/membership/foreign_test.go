package membership

import (
	"log/slog"
	"math/rand/v2"
	"net"
	"testing"

	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"
)

// stranger is a memberlist program that is not ours.
type stranger struct{ meta []byte }

func (s stranger) NodeMeta(int) []byte           { return s.meta }
func (stranger) NotifyMsg([]byte)                {}
func (stranger) GetBroadcasts(int, int) [][]byte { return nil }
func (stranger) LocalState(bool) []byte          { return []byte("hello") }
func (stranger) MergeRemoteState([]byte, bool)   {}

func TestStrangersAndGarbageChangeNothing(t *testing.T) {
	noLeak(t)
	a := start(t, Config{Member: member("vm0", 0, 1), Nodes: 2})
	for name, meta := range map[string][]byte{"no meta": nil, "other meta": []byte("consul"), "our meta, other name": encodeMeta(expects(a.Member(), 2))} {
		g := (&Config{Member: member("x", 0, 1), Bind: loopback(0), Cluster: "ringtrain"}).gossip(nil)
		g.Name, g.Delegate = name, stranger{meta}
		g.Logger = bridge(slog.New(slog.DiscardHandler), nil)
		list, err := memberlist.Create(g)
		require.NoError(t, err)
		defer func() { require.NoError(t, list.Shutdown()) }()
		_, err = list.Join([]string{"seed/" + a.Addr().String()})
		require.NoError(t, err)
		for _, n := range list.Members() {
			if n.Name != name { // valid for the transport, garbage as a message
				require.NoError(t, list.SendReliable(n, []byte("garbage")))
				require.NoError(t, list.SendBestEffort(n, []byte{codecVersion, byte(commit), 1}))
			}
		}
	}
	conn, err := net.Dial("udp", a.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	r := rand.New(rand.NewPCG(1, 1))
	for range 3000 {
		p := make([]byte, 1+r.IntN(200))
		for i := range p {
			p[i] = byte(r.Uint32())
		}
		_, err := conn.Write(p)
		require.NoError(t, err)
	}
	b := start(t, Config{Member: member("vm1", 0, 1), Nodes: 2, Join: []string{a.Addr().String()}})
	views(t, []*Agent{a, b})
}

package membership

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/hashicorp/memberlist"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/ringtrain/ringtrain/collective"
)

func drawPeer() *rapid.Generator[peer] {
	return rapid.Custom(func(t *rapid.T) peer {
		return peer{rapid.StringN(1, -1, maxName).Draw(t, "name"), rapid.Uint64Min(1).Draw(t, "nonce")}
	})
}

func drawAddr() *rapid.Generator[netip.AddrPort] {
	return rapid.Custom(func(t *rapid.T) netip.AddrPort {
		size := rapid.SampledFrom([]int{4, 16}).Draw(t, "size")
		ip, _ := netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "ip"))
		return netip.AddrPortFrom(ip.Unmap(), rapid.Uint16().Draw(t, "port"))
	})
}

func drawMember() *rapid.Generator[collective.Member] {
	return rapid.Custom(func(t *rapid.T) collective.Member {
		p := drawPeer().Draw(t, "peer")
		size := rapid.IntRange(1, maxLocalSize).Draw(t, "size")
		return collective.Member{
			Name: p.Name, Nonce: p.Nonce, Node: drawPeer().Draw(t, "node").Name,
			Local: rapid.IntRange(0, size-1).Draw(t, "local"), LocalSize: size,
			Host: collective.HostID(rapid.Uint64().Draw(t, "host")), Role: collective.Role(rapid.IntRange(0, 1).Draw(t, "role")),
			Addrs: append([]netip.AddrPort(nil), rapid.SliceOfN(drawAddr(), 0, 4).Draw(t, "addrs")...),
		}
	})
}

func drawMessage() *rapid.Generator[message] {
	return rapid.Custom(func(t *rapid.T) message {
		round := rapid.Uint64Max(1<<63 - 1)
		msg := message{
			Kind: kind(rapid.IntRange(1, int(kinds)-1).Draw(t, "kind")),
			From: drawPeer().Draw(t, "from"), To: drawPeer().Draw(t, "to"),
			Job: rapid.Uint64().Draw(t, "job"), Epoch: rapid.Uint64().Draw(t, "epoch"),
		}
		if rapid.Bool().Draw(t, "with ballot") {
			msg.Ballot = ballot{round.Draw(t, "round"), drawPeer().Draw(t, "by")}
		}
		if rapid.Bool().Draw(t, "without vote") {
			return msg
		}
		v := &vote{Ballot: ballot{round.Draw(t, "vote's round"), drawPeer().Draw(t, "vote's proposer")}}
		v.View.Job, v.View.Epoch = rapid.Uint64Min(1).Draw(t, "view's job"), rapid.Uint64Min(1).Draw(t, "view's epoch")
		v.View.Members = rapid.SliceOfNDistinct(drawMember(), 1, 5, peerOf).Draw(t, "members")
		absent := rapid.SliceOfN(rapid.Bool(), len(v.View.Members), len(v.View.Members)).Draw(t, "absent")
		for _, a := range absent {
			if a {
				v.Absent = absent
			}
		}
		msg.Vote = v
		return msg
	})
}

// expects returns a candidate that wants only a number of machines.
func expects(m collective.Member, nodes int) candidate {
	return candidate{m, wish{Format: metaVersion, Nodes: nodes}}
}

func drawWish() *rapid.Generator[wish] {
	return rapid.Custom(func(t *rapid.T) wish {
		w := wish{
			Format: metaVersion, Nodes: rapid.IntRange(0, maxNodes).Draw(t, "nodes"), NodeRank: rapid.IntRange(0, maxNodes).Draw(t, "node rank"),
			Rank0: rapid.StringN(-1, -1, 20).Draw(t, "rank 0"), Version: rapid.StringN(-1, -1, 20).Draw(t, "version"),
		}
		for range rapid.IntRange(0, 2).Draw(t, "settings") { // many long ones do not fit
			w.Same = append(w.Same, Setting{rapid.StringN(-1, -1, 20).Draw(t, "name"), rapid.StringN(-1, -1, 20).Draw(t, "value")})
		}
		return w
	})
}

func TestMessageRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		msg := drawMessage().Draw(t, "message")
		b := encodeMessage(msg)
		got, err := decodeMessage(b)
		require.NoError(t, err)
		require.Equal(t, msg, got)
		cut := rapid.IntRange(0, len(b)-1).Draw(t, "cut")
		_, err = decodeMessage(b[:cut])
		require.ErrorIs(t, err, errWire, "every byte counts")
		_, err = decodeMessage(append(b, 0))
		require.ErrorIs(t, err, errWire, "nothing may follow")
	})
}

func TestMetaRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := candidate{drawMember().Draw(t, "member"), drawWish().Draw(t, "wish")}
		got, err := identify(peerOf(c.Member).gossipName(), encodeMeta(c))
		require.NoError(t, err)
		require.Equal(t, c, got)
		_, err = identify("x"+peerOf(c.Member).gossipName(), encodeMeta(c))
		require.ErrorIs(t, err, errWire)
	})
}

func TestMetaAtItsMaximum(t *testing.T) {
	m := collective.Member{
		Name: strings.Repeat("n", maxName), Nonce: 1<<64 - 1, Node: strings.Repeat("m", maxName),
		Local: maxLocalSize - 1, LocalSize: maxLocalSize, Host: 1<<64 - 1, Role: collective.Server,
	}
	for i := range 100 {
		m.Addrs = append(m.Addrs, netip.AddrPortFrom(netip.MustParseAddr("fd00::1").Next(), uint16(i)))
	}
	c, meta, err := visible(expects(m, maxNodes))
	require.NoError(t, err)
	require.LessOrEqual(t, len(meta), memberlist.MetaMaxSize, "memberlist panics on more")
	require.GreaterOrEqual(t, len(c.Addrs), 14)
	require.Equal(t, m.Addrs[:len(c.Addrs)], c.Addrs, "the best addresses stay")
	require.Greater(t, len(meta)+19, memberlist.MetaMaxSize, "one more IPv6 address would not fit")
	require.LessOrEqual(t, len(peerOf(m).gossipName()), 255)
}

func TestDecoderRefuses(t *testing.T) {
	one := collective.Member{Name: "a", Nonce: 1, Node: "a", LocalSize: 1}
	encoded := func(change func(*message)) []byte {
		msg := message{Kind: commit, From: peer{"a", 1}, To: peer{"b", 2}, Vote: &vote{
			Ballot: ballot{1, peer{"a", 1}}, View: collective.View{Job: 1, Epoch: 1, Members: []collective.Member{one}},
		}}
		change(&msg)
		return encodeMessage(msg)
	}
	_, err := decodeMessage(encoded(func(*message) {}))
	require.NoError(t, err)
	for name, change := range map[string]func(*message){
		"no kind":         func(m *message) { m.Kind = 0 },
		"unknown kind":    func(m *message) { m.Kind = kinds },
		"no sender":       func(m *message) { m.From = peer{} },
		"no receiver":     func(m *message) { m.To = peer{} },
		"half a peer":     func(m *message) { m.From.Nonce = 0 },
		"long name":       func(m *message) { m.From.Name = strings.Repeat("a", maxName+1) },
		"no members":      func(m *message) { m.Vote.View.Members = nil },
		"no job":          func(m *message) { m.Vote.View.Job = 0 },
		"no epoch":        func(m *message) { m.Vote.View.Epoch = 0 },
		"a member twice":  func(m *message) { m.Vote.View.Members = []collective.Member{one, one} },
		"watcher in View": func(m *message) { m.Vote.View.Members[0].Role = collective.Watcher },
		"local too high":  func(m *message) { m.Vote.View.Members[0].Local = 1 },
	} {
		one = collective.Member{Name: "a", Nonce: 1, Node: "a", LocalSize: 1}
		_, err := decodeMessage(encoded(change))
		require.ErrorIs(t, err, errWire, name)
	}
	_, err = decodeMessage(make([]byte, maxMessage+1))
	require.ErrorIs(t, err, errWire, "too long")

	// A few bytes that announce many members allocate nothing for them.
	short := encoded(func(m *message) { m.Vote = nil })
	short[len(short)-1] = 1
	w := &writer{b: short}
	w.ballot(ballot{})
	w.word(1)
	w.word(1)
	w.num(maxMembers)
	n := testing.AllocsPerRun(10, func() { _, err = decodeMessage(w.b) })
	require.ErrorIs(t, err, errWire)
	require.Less(t, n, 20.0)
}

func FuzzMessage(f *testing.F) {
	one := collective.Member{Name: "a", Nonce: 1, Node: "a", LocalSize: 1, Addrs: []netip.AddrPort{netip.MustParseAddrPort("1.2.3.4:5")}}
	f.Add([]byte{})
	f.Add(encodeMessage(message{Kind: query, From: peer{"a", 1}, To: peer{"b", 2}}))
	f.Add(encodeMessage(message{Kind: propose, From: peer{"a", 1}, To: peer{"b", 2}, Ballot: ballot{3, peer{"a", 1}}, Vote: &vote{
		Ballot: ballot{3, peer{"a", 1}}, View: collective.View{Job: 1, Epoch: 1, Members: []collective.Member{one}}, Absent: []bool{true},
	}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		msg, err := decodeMessage(b)
		if err != nil {
			require.ErrorIs(t, err, errWire)
			return
		}
		again, err := decodeMessage(encodeMessage(msg))
		require.NoError(t, err)
		require.Equal(t, msg, again)
	})
}

func FuzzMeta(f *testing.F) {
	f.Add([]byte{metaVersion})
	f.Add(encodeMeta(expects(collective.Member{Name: "a", Nonce: 1, Node: "b", LocalSize: 2, Local: 1}, 3)))
	f.Add(encodeMeta(expects(collective.Member{Name: "a", Nonce: 1, Node: "b", LocalSize: 1, Addrs: []netip.AddrPort{netip.MustParseAddrPort("[::1]:5")}}, 3)))
	f.Add(binary.AppendUvarint([]byte{metaVersion}, 1<<63))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeMeta(b)
		if err != nil {
			require.True(t, errors.Is(err, errWire))
			return
		}
		require.Less(t, c.Local, c.LocalSize)
		if len(b) <= memberlist.MetaMaxSize {
			again, err := decodeMeta(encodeMeta(c))
			require.NoError(t, err)
			require.Equal(t, c.Name, again.Name)
			require.Equal(t, c.Addrs[:len(again.Addrs)], again.Addrs)
		}
	})
}

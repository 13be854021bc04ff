package paramserver

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// silent are messages of a group in which nobody else says anything.
type silent struct{}

func (silent) Send(context.Context, int, uint32, collective.Vector) error { return nil }
func (silent) Next(context.Context) (collective.Message, error)           { return collective.Message{}, io.EOF }
func (silent) Recv(context.Context, collective.Vector) error              { return nil }
func (silent) End(context.Context) error                                  { return nil }

// mailOf returns the mail of worker 0 of two, which own a parameter each.
func mailOf(t testing.TB) *peerMail {
	groups := local(t, 2, 0)
	b := cpu.New(cpu.Options{})
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	o := optim.DefaultAdam()
	l := layout{Parameters: []parameter{{Name: "a", Len: 5}, {Name: "b", Offset: 16, Len: 3}}, Slots: o.Slots(), Asynchronous: &asynchronous{}}
	x := newExchange(ranks{groups[0], 2, span(0, 2)}, l, updater{b, o, ""})
	m := newPeerMail(silent{}, x, owner{share: x.share, quorum: 1})
	t.Cleanup(m.close)
	return m
}

// say delivers a message of worker 1.
func (p *peerMail) say(tag uint32, h header) error {
	b := make([]float32, p.elements(tag, 1))
	h.put(b)
	for i := range b[headerLen:] {
		b[headerLen+i] = float32(h.version)
	}
	return p.deliver(1, tag, b)
}

// Newer values replace older ones, and never the other way round.
func TestPeerMailParks(t *testing.T) {
	m := mailOf(t)
	for _, version := range []int{1, 3, 2} {
		require.NoError(t, m.say(peerValues, header{version: version}))
	}
	require.Equal(t, 3, m.parked[1].version)
	require.Equal(t, float32(3), m.parked[1].values[0])
}

// Answers to an earlier question do not count.
func TestPeerMailAnswers(t *testing.T) {
	m := mailOf(t)
	m.expect(2)
	require.NotNil(t, m.answers[0], "its own")
	require.NoError(t, m.say(peerAnswer, header{number: 1}))
	require.Nil(t, m.answers[1])
	require.NoError(t, m.say(peerAnswer, header{number: 2, version: 4}))
	require.Equal(t, 4, getHeader(m.answers[1]).version)
}

// Messages that no Peers of this version sends are errors, and never a panic, whatever they
// contain.
func FuzzPeerMail(f *testing.F) {
	f.Add(peerGradient, uint64(0), uint64(1), uint64(0))
	f.Add(peerFinal, uint64(7), uint64(0), uint64(1))
	f.Add(peerTags, uint64(1), uint64(1<<63), uint64(0))
	f.Fuzz(func(t *testing.T, tag uint32, version, rows, stop uint64) {
		m := mailOf(t)
		n := m.elements(tag, 1)
		if n < 0 {
			return
		}
		b := make([]float32, n)
		for i := 0; i+1 < n; i += 2 {
			putWord(b[i:], []uint64{0, version, rows, 0, 0, stop}[min(i/2, 5)])
		}
		if m.deliver(1, tag, b) == nil {
			require.GreaterOrEqual(t, m.owner.rows, 0)
			require.LessOrEqual(t, m.owner.count, 1)
		}
	})
}

package membership

import (
	"bytes"
	"context"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
)

// A Watcher asks members; one has no answer and one is gone.
func TestAsk(t *testing.T) {
	noLeak(t)
	echo := func(question []byte) []byte { return append([]byte("you asked "), question...) }
	cluster := t.Name()
	first := start(t, Config{Member: member("a", 0, 3), Cluster: cluster, Answer: echo})
	seed := []string{first.Addr().String()}
	agents := []*Agent{
		first,
		start(t, Config{Member: member("a", 1, 3), Cluster: cluster, Join: seed}),
		start(t, Config{Member: member("a", 2, 3), Cluster: cluster, Join: seed, Answer: func([]byte) []byte {
			return make([]byte, MaxAnswer+1)
		}}),
	}
	views(t, agents)
	w := start(t, Config{Member: collective.Member{Name: "w", Role: collective.Watcher}, Cluster: cluster, Join: seed})

	answer, err := w.Ask(soon(t), first.Member(), []byte("the time"))
	require.NoError(t, err)
	require.Equal(t, "you asked the time", string(answer))
	empty, err := w.Ask(soon(t), first.Member(), nil)
	require.NoError(t, err)
	require.Equal(t, "you asked ", string(empty))

	for _, silent := range agents[1:] { // no answer, and one that is too long
		_, err = w.Ask(brief(t), silent.Member(), []byte("x"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, silent.Member().Name)
	}
	stranger := first.Member()
	stranger.Nonce++
	_, err = w.Ask(brief(t), stranger, []byte("x"))
	require.ErrorIs(t, err, context.DeadlineExceeded, "an earlier life of the process")
	_, err = w.Ask(soon(t), first.Member(), make([]byte, MaxQuestion+1))
	require.ErrorContains(t, err, "1025 bytes")
	require.Empty(t, w.letters.pending)
}

// Unread questions are dropped and use no memory.
func TestUnreadQuestionsAreDropped(t *testing.T) {
	ls := newLetters()
	for range 10 * maxUnread {
		ls.receive(letter{mark: questionMark})
	}
	require.Len(t, ls.unread, maxUnread)
	ls.receive(letter{mark: answerMark, id: 7})
	c := ls.expect(7)
	for range 3 { // every repetition is answered
		ls.receive(letter{mark: answerMark, id: 7, body: []byte("x")})
	}
	require.Equal(t, []byte("x"), <-c)
	require.Empty(t, c)
}

func FuzzLetter(f *testing.F) {
	f.Add(letter{questionMark, peer{"a/0", 1}, peer{"w", 2}, netip.MustParseAddrPort("10.0.0.1:7946"), 3, []byte("x")}.encode())
	f.Add(letter{answerMark, peer{"a/0", 1}, peer{"w", 2}, netip.MustParseAddrPort("[::1]:1"), 3, nil}.encode())
	f.Add(letter{callMark, peer{"a/0", 1}, peer{"b/0", 2}, netip.MustParseAddrPort("[::1]:1"), 3, []byte{1}}.encode())
	f.Add([]byte{questionMark})
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := decodeLetter(b)
		if err != nil {
			require.ErrorIs(t, err, errWire)
			return
		}
		require.True(t, isLetter(b))
		require.LessOrEqual(t, len(l.body), MaxAnswer)
		again, err := decodeLetter(l.encode())
		require.NoError(t, err)
		require.Equal(t, l, again)
		require.True(t, bytes.HasSuffix(b, l.body))
	})
}

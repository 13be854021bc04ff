package membership

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// lines is a log that may be read while it is written.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestKey(t *testing.T) {
	noLeak(t)
	key, other := bytes.Repeat([]byte("K"), keySize), bytes.Repeat([]byte("L"), keySize)
	var said lines
	log := slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug - 4}))
	a := start(t, Config{Member: member("vm0", 0, 1), Nodes: 2, Key: key, Log: log})
	join := []string{a.Addr().String()}
	for says, k := range map[string][]byte{"it has another key than this process": other, "it has a key, and this process has none": nil} {
		stranger := start(t, Config{Member: member("vm1", 0, 1), Nodes: 2, Key: k, Join: join, Log: log})
		_, err := stranger.View(brief(t))
		require.ErrorContains(t, err, says)
		require.NoError(t, stranger.Close())
	}
	plain := start(t, Config{Member: member("vm2", 0, 1), Nodes: 2, Log: log})
	keyed := start(t, Config{Member: member("vm3", 0, 1), Nodes: 2, Key: key, Join: []string{plain.Addr().String()}, Log: log})
	_, err := keyed.View(brief(t))
	require.ErrorContains(t, err, "it has no key, and this process has one")
	require.NoError(t, keyed.Close())

	_, err = a.View(brief(t))
	require.ErrorContains(t, err, "1 worker here of 2 machines", "who has no key is not even seen")
	b := start(t, Config{Member: member("vm1", 0, 1), Nodes: 2, Key: key, Join: join, Log: log})
	views(t, []*Agent{a, b})
	require.NotContains(t, said.String(), string(key[:8]))
	require.NotContains(t, said.String(), string(other[:8]))

	_, err = Start(t.Context(), Config{Member: member("vm0", 0, 1), Key: key[:31]})
	require.ErrorIs(t, err, ErrConfig)
	require.ErrorContains(t, err, "Key has 31 bytes, not 32")
}

package membership

import (
	"bytes"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// lines is a log that can be read while it is written.
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
	for says, k := range map[string][]byte{"has a different key": other, "has a key, and this process has none": nil} {
		stranger := start(t, Config{Member: member("vm1", 0, 1), Nodes: 2, Key: k, Join: join, Log: log})
		_, err := stranger.View(soon(t))
		require.ErrorIs(t, err, ErrKey)
		require.EqualError(t, err, join[0]+" "+says+": give both the same key file")
		require.NoError(t, stranger.Close())
	}
	plain := start(t, Config{Member: member("vm2", 0, 1), Nodes: 2, Log: log})
	keyed := start(t, Config{Member: member("vm3", 0, 1), Nodes: 2, Key: key, Join: []string{plain.Addr().String()}, Log: log})
	_, err := keyed.View(soon(t))
	require.EqualError(t, err, plain.Addr().String()+" has no key, and this process has one: give both the same key file")
	require.NoError(t, keyed.Close())
	_, err = plain.View(soon(t))
	require.ErrorIs(t, err, ErrKey, "without a key nothing is authenticated, so it believes this too")
	require.EqualError(t, err, "127.0.0.1 has a key, and this process has none: give both the same key file")

	_, err = a.View(brief(t))
	require.ErrorContains(t, err, "waiting for 1 more machine (1 of 2 workers have joined)", "a process without the key cannot end the wait")
	require.ErrorContains(t, err, "127.0.0.1 tried to join with a different key: give both the same key file")
	require.ErrorContains(t, err, "127.0.0.1 tried to join without a key: give both the same key file")
	b := start(t, Config{Member: member("vm1", 0, 1), Nodes: 2, Key: key, Join: join, Log: log})
	views(t, []*Agent{a, b})
	require.NotContains(t, said.String(), string(key[:8]))
	require.NotContains(t, said.String(), string(other[:8]))

	_, err = Start(t.Context(), Config{Member: member("vm0", 0, 1), Key: key[:31]})
	require.ErrorIs(t, err, ErrConfig)
	require.ErrorContains(t, err, "Key must have 32 bytes, not 31")
}

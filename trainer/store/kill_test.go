package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/secret"
)

// serveProcess serves a directory until stdin ends. It prints its address when it is
// ready.
func serveProcess(dir, addr string) (code int) {
	err := func() error {
		c := ServerConfig{Addr: addr}
		if path := os.Getenv(withKey); path != "" {
			key, err := secret.ReadFile(path)
			if err != nil {
				return err
			}
			c.Key = &key
		}
		db, err := Open(dir, Options{})
		if err != nil {
			return err
		}
		s, err := Serve(db, c)
		if err != nil {
			return err
		}
		fmt.Println(s.Addr())
		_, _ = io.Copy(io.Discard, os.Stdin)
		return errors.Join(s.Close(), db.Close())
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A victim is a server in a process that is killed and started again.
type victim struct {
	dir, addr, keyFile string
	cmd                *exec.Cmd
}

// start starts the process and returns once it serves.
func (v *victim) start(t *testing.T) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	v.cmd = exec.Command(exe)
	v.cmd.Env = append(os.Environ(), asServer+"="+v.dir, atAddr+"="+v.addr, withKey+"="+v.keyFile)
	v.cmd.Stderr = os.Stderr
	_, err = v.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := v.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, v.cmd.Start())
	line, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err, "the server ended before it was ready")
	v.addr = strings.TrimSpace(line)
}

func (v *victim) kill(t *testing.T) {
	require.NoError(t, v.cmd.Process.Kill())
	require.Error(t, v.cmd.Wait())
}

// Servers are killed at random moments. No acknowledged update is lost, none takes effect
// twice, and no partial value is read.
func TestKilledServer(t *testing.T) { testKills(t, 8, nil) }

func TestKilledServerWithAKey(t *testing.T) { testKills(t, 4, newKey(t)) }

func TestServerKilledOften(t *testing.T) {
	collectivetest.Slow(t)
	testKills(t, 100, nil)
}

func testKills(t *testing.T, kills int, key *secret.Key) {
	v := &victim{dir: t.TempDir(), addr: "127.0.0.1:0"}
	if key != nil {
		v.keyFile = t.TempDir() + "/key"
		require.NoError(t, secret.WriteFile(v.keyFile, *key))
	}
	v.start(t)
	client, err := NewClient(ClientConfig{Addr: v.addr, Key: key})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	l := &ledger{acknowledged: map[string]uint64{}, progress: make(chan bool, 1)}
	var writers sync.WaitGroup
	for i := range 6 {
		name := fmt.Sprintf("writer %d", i)
		if i >= 3 {
			name = "shared"
		}
		writers.Go(func() { l.fail(count(ctx, client, name, l)) })
	}
	random := rand.New(rand.NewPCG(1, uint64(kills)))
	for range kills {
		<-l.progress // since the last kill, or just before it
		<-time.After(time.Duration(random.IntN(20_000)) * time.Microsecond)
		v.kill(t)
		v.start(t)
	}
	stop() // the calls in progress are done
	writers.Wait()
	require.NoError(t, l.err)
	require.NoError(t, client.Close())
	v.kill(t)

	db := opened(t, v.dir)
	total := uint64(0)
	for key, acknowledged := range l.acknowledged {
		n, err := counted(t.Context(), db, key)
		require.NoError(t, err)
		require.Equal(t, acknowledged, n, key)
		total += n
	}
	require.GreaterOrEqual(t, total, uint64(kills))
	t.Log(kills, "kills,", total, "updates")
}

// A ledger has the updates that were acknowledged.
type ledger struct {
	mu           sync.Mutex
	acknowledged map[string]uint64 // by key
	err          error             // of the writers that failed
	progress     chan bool
}

func (l *ledger) fail(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = errors.Join(l.err, err)
}

func (l *ledger) acknowledge(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acknowledged[key]++
	select {
	case l.progress <- true:
	default:
	}
}

// count adds 1 to a key again and again, until ctx ends. It completes the calls in
// progress, so that all that it did is acknowledged.
func count(ctx context.Context, s Store, key string, l *ledger) error {
	for ctx.Err() == nil {
		n, err := counted(context.Background(), s, key)
		if err != nil {
			return err
		}
		data := make([]float64, 1500) // three pages
		for i := range data {
			data[i] = float64(n + 1)
		}
		v, err := Tensor(data)
		if err != nil {
			return err
		}
		_, err = s.Set(context.Background(), key, v, n)
		var conflict *VersionError
		switch {
		case errors.As(err, &conflict) && key == "shared": // another writer came first
		case err != nil:
			return err
		default:
			l.acknowledge(key)
		}
	}
	return nil
}

// counted returns the count of a key, which must be the same in its version and in all
// elements.
func counted(ctx context.Context, s Store, key string) (uint64, error) {
	v, version, err := s.Get(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	data, err := Floats[float64](v)
	if err != nil {
		return 0, err
	}
	for _, x := range data {
		if x != float64(version) {
			return 0, fmt.Errorf("%s: version %d has an element of version %v", key, version, x)
		}
	}
	return version, nil
}

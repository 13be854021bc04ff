package cli_test

import (
	"bytes"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
)

// keyFile makes a key with the command and returns its path and text.
func keyFile(t *testing.T) (path, text string) {
	path = filepath.Join(t.TempDir(), "job.key")
	code, stdout, stderr := result("keygen", path)
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, path)
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	text = strings.TrimSpace(string(b))
	require.Len(t, text, 44)
	require.NotContains(t, stdout, text)
	return path, text
}

// freeAddr returns a loopback address where nothing listens.
func freeAddr(t *testing.T) string {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer free.Close()
	return free.Addr().String()
}

func TestKeygen(t *testing.T) {
	path, text := keyFile(t)
	code, stdout, stderr := result("keygen", "-")
	require.Zero(t, code)
	require.Empty(t, stderr)
	require.Len(t, stdout, 45)
	require.NotContains(t, stdout, text, "each key is new")

	corrupt := filepath.Join(t.TempDir(), "corrupt")
	require.NoError(t, os.WriteFile(corrupt, []byte(text[:40]), 0o600))
	train := []string{"train", config(t), "--key-file"}
	cases := map[string][]string{
		"already exists":                   {"keygen", path},
		"keygen needs a FILE":              {"keygen"},
		"no such file":                     append(train, path+".none"),
		"not a key":                        append(train, corrupt),
		"not a regular file":               append(train, t.TempDir()),
		"--key-file is empty":              append(train, ""),
		"cannot be combined with --key-fi": append(train, path, "--transport", "inproc"),
	}
	if runtime.GOOS != "windows" {
		loose := filepath.Join(t.TempDir(), "loose")
		require.NoError(t, os.WriteFile(loose, []byte(text), 0o600))
		require.NoError(t, os.Chmod(loose, 0o644))
		cases["chmod 600 "+loose] = append(train, loose)
	}
	for want, args := range cases {
		code, stdout, stderr := result(args...)
		require.Equal(t, 2, code, "%v: %s", args, stderr)
		require.Contains(t, stderr, want)
		require.Equal(t, 1, strings.Count(stderr, "\n"), "one line: %s", stderr)
		require.Empty(t, stdout)
		require.NotContains(t, stderr, text[:8])
	}
	t.Setenv(cluster.EnvKeyFile, corrupt)
	code, _, stderr = result("train", config(t))
	require.Equal(t, 2, code)
	require.Contains(t, stderr, cluster.EnvKeyFile+": key file "+corrupt)
}

// Two machines with one key train as they do without. A third with a different key gets
// an error and does not disturb them.
func TestTwoNodesWithAKey(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows cannot interrupt another process")
	}
	path, text := keyFile(t)
	other, otherText := keyFile(t)
	addr := freeAddr(t)
	steps := []string{"--steps", "20", "--training.batch_size", "32"}
	job := append(small(t, "--workers", "2", "--nodes", "2", "--cluster", t.Name(), "--log-level", "debug"), steps...)
	var said bytes.Buffer

	first := command(t, append(job, "--bind", addr, "--key-file", path)...)
	var firstOut, firstErr bytes.Buffer
	first.Stdout, first.Stderr = &firstOut, &firstErr
	require.NoError(t, first.Start())

	third := command(t, append(job, "--join", addr, "--key-file", other)...)
	third.Stderr = &said
	require.Error(t, third.Run())
	require.Equal(t, 2, third.ProcessState.ExitCode(), &said)
	require.Regexp(t, `ringtrain: worker 0 \(\S+/0\): `+addr+` has a different key: give both the same key file\n`, said.String())

	second := command(t, append(job, "--join", addr)...)
	second.Env = append(second.Env, cluster.EnvKeyFile+"="+path)
	var secondOut, secondErr bytes.Buffer
	second.Stdout, second.Stderr = &secondOut, &secondErr
	require.NoError(t, second.Run(), &secondErr)
	require.NoError(t, first.Wait(), &firstErr)
	require.Contains(t, firstErr.String(), "127.0.0.1 tried to join with a different key")
	alone := train(t, append(small(t, "--workers", "4", "--transport", "inproc"), steps...)...)
	for _, out := range []*bytes.Buffer{&firstOut, &secondOut} {
		all := events(t, out.Bytes())
		last := all[len(all)-1]
		require.Equal(t, "result", last.Event)
		require.Equal(t, 4, last.Workers)
		require.Equal(t, alone[len(alone)-1].Weights, last.Weights, "the key makes no difference")
		require.Empty(t, only(all, "peer_lost"))
	}
	for _, out := range []*bytes.Buffer{&said, &firstOut, &firstErr, &secondOut, &secondErr} {
		require.NotContains(t, out.String(), text[:8])
		require.NotContains(t, out.String(), otherText[:8])
	}
}

// The warning about a missing key comes only for addresses beyond loopback.
func TestKeySilencesTheWarning(t *testing.T) {
	own, err := cluster.OwnAddr()
	if err != nil {
		t.Skip(err)
	}
	path, _ := keyFile(t)
	const warning = "neither encrypted nor authenticated"
	for _, key := range [][]string{nil, {"--key-file", path}} {
		cmd := command(t, append(small(t, "--workers", "2", "--steps", "2", "--bind", own.String()), key...)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		require.NoError(t, cmd.Run(), &stderr)
		require.Equal(t, key == nil, strings.Contains(stderr.String(), warning), &stderr)
	}
}

package secret_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/secret"
)

const text = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=" // the bytes 0 to 31

func key(t testing.TB) secret.Key {
	k := secret.New()
	return k
}

func TestText(t *testing.T) {
	k, err := secret.ParseKey(" " + text + "\r\n")
	require.NoError(t, err)
	require.Equal(t, text, k.Text())
	same, err := secret.ParseKey("000102030405060708090A0B0C0D0E0F101112131415161718191a1b1c1d1e1f")
	require.NoError(t, err)
	require.Equal(t, k, same)
	require.NotEqual(t, key(t), key(t))
	for _, bad := range []string{"", "x", text[:43], text[:40], text + "AAAA", text[:42] + "9=", strings.Repeat("g", 64), strings.Repeat("0", 64), text + text} {
		_, err := secret.ParseKey(bad)
		require.ErrorIs(t, err, secret.ErrNotKey, "%q", bad)
		if len(bad) > 1 {
			require.NotContains(t, err.Error(), bad)
		}
	}
}

// Nothing but Text reveals a Key.
func TestKeyIsNotRevealed(t *testing.T) {
	k, err := secret.ParseKey(text)
	require.NoError(t, err)
	var out bytes.Buffer
	holder := struct {
		K secret.Key
		P *secret.Key
	}{k, &k}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "%b", "%o"} {
		for _, v := range []any{k, &k, holder, &holder, []secret.Key{k}} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	fmt.Fprintln(&out, k, &k, holder)
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("x", "key", k, "p", &k, "holder", holder)
	}
	require.NoError(t, json.NewEncoder(&out).Encode(holder))
	for _, leak := range []string{text, text[:12], hex.EncodeToString([]byte{0, 1, 2, 3}), "0 1 2 3", "0x0, 0x1", "1 10 11"} {
		require.NotContains(t, strings.ToLower(out.String()), strings.ToLower(leak))
	}
	require.Contains(t, out.String(), "a secret key")
}

// Derived keys must never change, or processes of two versions could not connect. They
// differ by purpose and from the Key.
func TestDerivedKeys(t *testing.T) {
	k, err := secret.ParseKey(text)
	require.NoError(t, err)
	gossip, err := k.GossipKey()
	require.NoError(t, err)
	require.Len(t, gossip, 32)
	require.Equal(t, "656e4058", hex.EncodeToString(gossip[:4]), "HKDF of RFC 5869 without salt, computed by another program")
	other, err := key(t).GossipKey()
	require.NoError(t, err)
	require.NotEqual(t, gossip, other)

	var none secret.Key
	_, err = none.GossipKey()
	require.ErrorIs(t, err, secret.ErrNotKey)
	_, err = none.Identity("x", 1)
	require.ErrorIs(t, err, secret.ErrNotKey)
	require.ErrorIs(t, secret.WriteFile(filepath.Join(t.TempDir(), "k"), none), secret.ErrNotKey)
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	k := key(t)
	require.NoError(t, secret.WriteFile(path, k))
	got, err := secret.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, k, got)
	err = secret.WriteFile(path, key(t))
	require.ErrorIs(t, err, fs.ErrExist)
	got, err = secret.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, k, got, "the file must not change")

	_, err = secret.ReadFile(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, err = secret.ReadFile(dir)
	require.ErrorContains(t, err, "not a regular file")
	_, err = secret.ReadFile(os.DevNull)
	require.ErrorContains(t, err, "not a regular file")
	require.Error(t, secret.WriteFile(filepath.Join(dir, "none", "key"), k))
	corrupt := filepath.Join(dir, "corrupt")
	require.NoError(t, os.WriteFile(corrupt, []byte(k.Text()[:30]), 0o600))
	_, err = secret.ReadFile(corrupt)
	require.ErrorIs(t, err, secret.ErrNotKey)
	require.ErrorContains(t, err, corrupt)
	require.NotContains(t, err.Error(), k.Text()[:8])
	require.NoError(t, os.WriteFile(corrupt, bytes.Repeat([]byte("A"), 1<<20), 0o600))
	_, err = secret.ReadFile(corrupt)
	require.ErrorIs(t, err, secret.ErrNotKey)
}

func TestLooseFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows does not store permissions in the file mode")
	}
	path := filepath.Join(t.TempDir(), "key")
	require.NoError(t, secret.WriteFile(path, key(t)))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode().Perm())
	for _, mode := range []fs.FileMode{0o640, 0o604, 0o620, 0o644, 0o666} {
		require.NoError(t, os.Chmod(path, mode))
		_, err = secret.ReadFile(path)
		require.ErrorIs(t, err, secret.ErrLoose, "%v", mode)
		require.ErrorContains(t, err, "chmod 600 "+path)
	}
	require.NoError(t, os.Chmod(path, 0o400))
	_, err = secret.ReadFile(path)
	require.NoError(t, err)
}

func FuzzParseKey(f *testing.F) {
	f.Add(text)
	f.Add(strings.Repeat("5a", 32))
	f.Fuzz(func(t *testing.T, s string) {
		k, err := secret.ParseKey(s)
		if err != nil {
			return
		}
		again, err := secret.ParseKey(k.Text())
		require.NoError(t, err)
		require.Equal(t, k, again)
	})
}

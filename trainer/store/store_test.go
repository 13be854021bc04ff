package store

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/secret"
)

// opened returns a DB in a directory, until the test ends.
func opened(t *testing.T, dir string) *DB {
	t.Helper()
	db, err := Open(dir, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}

// serving returns a Server of a DB, until the test ends.
func serving(t *testing.T, db *DB, c ServerConfig) *Server {
	t.Helper()
	if c.Addr == "" {
		c.Addr = "127.0.0.1:0"
	}
	s, err := Serve(db, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// connected returns a Client of a Server, until the test ends.
func connected(t *testing.T, s *Server, key *secret.Key) *Client {
	t.Helper()
	c, err := NewClient(ClientConfig{Addr: s.Addr().String(), Key: key})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func newKey(t *testing.T) *secret.Key {
	k := secret.New()
	return &k
}

func tensor[F float32 | float64](t *testing.T, data []F, shape ...int) Value {
	t.Helper()
	v, err := Tensor(data, shape...)
	require.NoError(t, err)
	return v
}

// Every Store passes the same tests.
func TestStores(t *testing.T) {
	t.Run("DB", func(t *testing.T) { testStore(t, opened(t, t.TempDir())) })
	t.Run("Client", func(t *testing.T) {
		testStore(t, connected(t, serving(t, opened(t, t.TempDir()), ServerConfig{}), nil))
	})
	t.Run("Client with a key", func(t *testing.T) {
		key := newKey(t)
		testStore(t, connected(t, serving(t, opened(t, t.TempDir()), ServerConfig{Key: key}), key))
	})
}

func testStore(t *testing.T, s Store) {
	ctx := t.Context()
	_, _, err := s.Get(ctx, "w")
	require.ErrorIs(t, err, ErrNotFound)
	require.ErrorContains(t, err, `"w"`)
	keys, err := s.Keys(ctx, "")
	require.NoError(t, err)
	require.Empty(t, keys)

	w := tensor(t, []float64{1, math.Inf(-1), 3, math.SmallestNonzeroFloat64, 5, 6}, 2, 3)
	version, err := s.Set(ctx, "w", w, 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, version)
	got, version, err := s.Get(ctx, "w")
	require.NoError(t, err)
	require.EqualValues(t, 1, version)
	require.Equal(t, w, got)

	testVersions(t, s, w)
	testRefusals(t, s)

	for key, v := range map[string]Value{"a b": Raw([]byte("\x00text")), "ä": Raw(nil), "none": tensor(t, []float32{}, 3, 0), "single": tensor(t, []float32{1.5, -2})} {
		_, err := s.Set(ctx, key, v, Any)
		require.NoError(t, err)
		got, version, err := s.Get(ctx, key)
		require.NoError(t, err)
		require.EqualValues(t, 1, version)
		require.Equal(t, v.String(), got.String())
		require.Equal(t, string(v.Data), string(got.Data))
	}
	version, err = s.Set(ctx, "ä", Raw([]byte("of another length")), 1)
	require.NoError(t, err)
	require.EqualValues(t, 2, version)
	keys, err = s.Keys(ctx, "")
	require.NoError(t, err)
	require.Equal(t, []string{"a b", "none", "single", "w", "ä"}, keys)
	keys, err = s.Keys(ctx, "n")
	require.NoError(t, err)
	require.Equal(t, []string{"none"}, keys)
	keys, err = s.Keys(ctx, strings.Repeat("n", MaxKey+1))
	require.NoError(t, err)
	require.Empty(t, keys)

	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, _, err = s.Get(ended, "w")
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Keys(ended, "")
	require.ErrorIs(t, err, context.Canceled)
	_, err = s.Set(ended, "w", w, Any)
	require.ErrorIs(t, err, context.Canceled)
}

// Of two writers that have read the same version, the second fails.
func testVersions(t *testing.T, s Store, w Value) {
	ctx := t.Context()
	for _, wrong := range []struct {
		key     string
		version uint64
		says    string
	}{
		{"w", 0, `"w" exists, at version 1: get it`},
		{"w", 2, `"w" is at version 1, not 2: somebody else has updated it`},
		{"new", 4, `"new" does not exist, so it has no version 4`},
	} {
		_, err := s.Set(ctx, wrong.key, w, wrong.version)
		var conflict *VersionError
		require.ErrorAs(t, err, &conflict)
		require.ErrorContains(t, err, wrong.says)
		require.Equal(t, wrong.version, conflict.Want)
	}
	version, err := s.Set(ctx, "w", w, 1)
	require.NoError(t, err)
	require.EqualValues(t, 2, version)
	version, err = s.Set(ctx, "w", w, Any)
	require.NoError(t, err)
	require.EqualValues(t, 3, version)
	_, _, err = s.Get(ctx, "new")
	require.ErrorIs(t, err, ErrNotFound)
}

// What is refused changes nothing, and the store still works.
func testRefusals(t *testing.T, s Store) {
	ctx := t.Context()
	before, version, err := s.Get(ctx, "w")
	require.NoError(t, err)
	wrong := func(change func(*Value)) Value {
		v := before
		change(&v)
		return v
	}
	for says, v := range map[string]Value{
		`"w" holds float64 [2 3], so it cannot become float64 [3 2]`: tensor(t, make([]float64, 6), 3, 2),
		`so it cannot become float32 [2 3]`:                          tensor(t, make([]float32, 6), 2, 3),
		`so it cannot become 3 bytes`:                                Raw([]byte("abc")),
		"type 9 does not exist":                                      wrong(func(v *Value) { v.Type = 9 }),
		"float64 [2 4] takes 64 bytes, not 48":                       wrong(func(v *Value) { v.Shape = []int{2, 4} }),
		"takes 48 bytes, not 47":                                     wrong(func(v *Value) { v.Data = v.Data[1:] }),
		"a dimension must be from 0 to 67108864, not -2":             wrong(func(v *Value) { v.Shape = []int{-2, -3} }),
		"a value must have at most 67108864 bytes: split":            wrong(func(v *Value) { v.Shape = []int{1 << 26, 1 << 26, 1 << 26} }),
		"at most 8 dimensions, not 9":                                wrong(func(v *Value) { v.Shape = make([]int, 9) }),
		"bytes have no shape [1]":                                    {Type: Bytes, Shape: []int{1}, Data: []byte{1}},
		"at most 67108864 bytes, not 67108865: split it":             Raw(make([]byte, MaxValue+1)),
	} {
		_, err := s.Set(ctx, "w", v, Any)
		require.ErrorIs(t, err, ErrRefused, says)
		require.ErrorContains(t, err, says)
	}
	for key, says := range map[string]string{
		"":                            "a key must not be empty",
		strings.Repeat("k", MaxKey+1): "a key must have at most 1024 bytes, not 1025",
		"a\nb":                        "must be printable UTF-8",
		"a\xff":                       "must be printable UTF-8",
	} {
		_, err := s.Set(ctx, key, before, Any)
		require.ErrorIs(t, err, ErrRefused)
		require.ErrorContains(t, err, says)
		_, _, err = s.Get(ctx, key)
		require.ErrorContains(t, err, says)
	}
	after, now, err := s.Get(ctx, "w")
	require.NoError(t, err)
	require.Equal(t, version, now)
	require.Equal(t, before, after)
}

// Keys returns all pages.
func TestPages(t *testing.T) {
	db := opened(t, t.TempDir())
	var want []string
	var batch []*update
	for i := range 2 * pageKeys {
		want = append(want, fmt.Sprintf("k%04d", i))
		batch = append(batch, &update{key: want[i], value: Raw(nil)})
	}
	require.NoError(t, db.commit(batch, make([]outcome, len(batch))))
	for _, s := range []Store{db, connected(t, serving(t, db, ServerConfig{}), nil)} {
		keys, err := s.Keys(t.Context(), "k")
		require.NoError(t, err)
		require.Equal(t, want, keys)
	}
}

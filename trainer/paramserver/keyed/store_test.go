package keyed

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/cluster"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
	"github.com/ringtrain/ringtrain/collective/secret"
	"github.com/ringtrain/ringtrain/nn/optim"
	"github.com/ringtrain/ringtrain/trainer/store"
)

// each calls f n times, concurrently.
func each(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

// over are ways to connect ranks.
func over(t *testing.T) map[string]collectivetest.Maker {
	key := secret.New()
	return map[string]collectivetest.Maker{
		"in process": collectivetest.Local,
		"tcp":        clustered(cluster.Config{Transport: cluster.TransportTCP}),
		"auto":       clustered(cluster.Config{}),
		"key":        clustered(cluster.Config{Key: &key}),
	}
}

// Every Store passes the same tests.
func TestStores(t *testing.T) {
	o := optim.SGD{LearnRate: optim.Constant(.5)}
	t.Run("Local", func(t *testing.T) { testStore(t, t.Context(), newLocal(t, o)) })
	for name, connect := range over(t) {
		for servers := 1; servers <= 3; servers++ {
			t.Run(fmt.Sprintf("%s, %d servers", name, servers), func(t *testing.T) {
				with(t, connect(t, 1+servers), locals(t, servers, o), func(ctx context.Context, s *Remote) { testStore(t, ctx, s) })
			})
		}
	}
}

// A Store does what a store on disk does, in the same words.
func TestStoresAreAlike(t *testing.T) {
	db, err := store.Open(t.TempDir(), store.Options{})
	require.NoError(t, err)
	defer db.Close()
	testValues(t, t.Context(), db)
}

// testStore is the conformance suite of Store, for one without keys whose optimizer
// subtracts half of each gradient.
func testStore(t *testing.T, ctx context.Context, s Store) {
	testValues(t, ctx, s)
	testPush(t, ctx, s)
	testPull(t, ctx, s)
	testMistakes(t, ctx, s)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for _, call := range []func() error{
		func() error { _, _, err := s.Get(ended, "w"); return err },
		func() error { _, err := s.Set(ended, "w", store.Raw(nil), store.Any); return err },
		func() error { _, err := s.Keys(ended, ""); return err },
		func() error { return s.Push(ended, Gradient{"w", store.Raw(nil)}) },
		func() error { _, err := s.Pull(ended, []Copy{{Key: "w"}}); return err },
	} {
		assert.ErrorIs(t, call(), context.Canceled)
	}
}

// testValues checks Get, Set and Keys.
func testValues(t *testing.T, ctx context.Context, s store.Store) {
	_, _, err := s.Get(ctx, "w")
	require.ErrorIs(t, err, store.ErrNotFound)
	require.ErrorContains(t, err, `"w"`)
	keys, err := s.Keys(ctx, "")
	require.NoError(t, err)
	require.Empty(t, keys)

	for key, v := range map[string]store.Value{
		"w": tensor(t, []float32{1, float32(math.Inf(-1)), 3, -0, 5, 6}, 2, 3), "wide": tensor(t, []float64{math.Pi}),
		"a b": store.Raw([]byte("\x00text")), "ä": store.Raw(nil), "none": tensor(t, []float32{}, 3, 0), "scalar": scalar(t, 7),
	} {
		version, err := s.Set(ctx, key, v, 0)
		require.NoError(t, err)
		require.EqualValues(t, 1, version)
		got, version, err := s.Get(ctx, key)
		require.NoError(t, err)
		require.EqualValues(t, 1, version)
		require.Equal(t, v.String(), got.String())
		require.Equal(t, string(v.Data), string(got.Data))
		clear(got.Data) // it belongs to the caller
		clear(v.Data)   // as this does
		again, _, err := s.Get(ctx, key)
		require.NoError(t, err)
		require.Equal(t, len(again.Data) > 0, strings.Trim(string(again.Data), "\x00") != "", key)
	}
	version, err := s.Set(ctx, "ä", store.Raw([]byte("longer")), 1)
	require.NoError(t, err)
	require.EqualValues(t, 2, version)
	for prefix, want := range map[string][]string{
		"": {"a b", "none", "scalar", "w", "wide", "ä"}, "w": {"w", "wide"}, "x": nil, strings.Repeat("w", store.MaxKey+1): nil,
	} {
		keys, err := s.Keys(ctx, prefix)
		require.NoError(t, err)
		require.Equal(t, want, keys, prefix)
	}

	for _, wrong := range []struct {
		key          string
		version      uint64
		have         uint64
		says         string
		cannotChange store.Value
	}{
		{"ä", 1, 2, `"ä" is at version 2, not 1: somebody else has updated it`, store.Raw(nil)},
		{"wide", 0, 1, `"wide" exists, at version 1`, tensor(t, []float64{1})},
		{"new", 4, 0, `"new" does not exist, so it has no version 4`, store.Raw(nil)},
	} {
		_, err := s.Set(ctx, wrong.key, wrong.cannotChange, wrong.version)
		var conflict *store.VersionError
		require.ErrorAs(t, err, &conflict)
		require.Equal(t, store.VersionError{Key: wrong.key, Want: wrong.version, Have: wrong.have}, *conflict)
		require.ErrorContains(t, err, wrong.says)
	}
	for says, v := range map[string]store.Value{
		`"wide" holds float64 [1], so it cannot become float64 [2]; use another key`: tensor(t, []float64{1, 2}),
		`so it cannot become float32 [1]`:                                            tensor(t, []float32{1}),
		"float64 [2] takes 16 bytes, not 8":                                          {Type: store.Float64, Shape: []int{2}, Data: make([]byte, 8)},
	} {
		_, err := s.Set(ctx, "wide", v, store.Any)
		require.ErrorIs(t, err, store.ErrRefused)
		require.ErrorContains(t, err, says)
	}
	v, version, err := s.Get(ctx, "wide")
	require.NoError(t, err)
	require.EqualValues(t, 1, version)
	require.Equal(t, tensor(t, []float64{math.Pi}), v)
}

// testPush applies gradients to values that Set replaces in between.
func testPush(t *testing.T, ctx context.Context, s Store) {
	_, err := s.Set(ctx, "p", tensor(t, []float32{1, 2, 3, 4}, 2, 2), 0)
	require.NoError(t, err)
	g := Gradient{"p", tensor(t, []float32{2, 0, -2, 4}, 2, 2)}
	require.NoError(t, s.Push(ctx, g, g))
	v, version, err := s.Get(ctx, "p")
	require.NoError(t, err)
	require.EqualValues(t, 3, version)
	require.Equal(t, []float32{-1, 2, 5, 0}, floats(t, v))
	_, err = s.Set(ctx, "p", tensor(t, []float32{8, 8, 8, 8}, 2, 2), version)
	require.NoError(t, err)
	require.NoError(t, s.Push(ctx, g, Gradient{"none", tensor(t, []float32{}, 3, 0)}, Gradient{"scalar", scalar(t, 2)}))
	v, version, err = s.Get(ctx, "p")
	require.NoError(t, err)
	require.EqualValues(t, 5, version)
	require.Equal(t, []float32{7, 8, 9, 6}, floats(t, v))
	require.NoError(t, s.Push(ctx))
}

// testPull updates copies of what has changed, in their memory, and leaves the others.
func testPull(t *testing.T, ctx context.Context, s Store) {
	copies := []Copy{{Key: "scalar"}, {Key: "p"}, {Key: "ä"}, {Key: "none"}}
	changed, err := s.Pull(ctx, copies)
	require.NoError(t, err)
	require.Equal(t, 4, changed)
	for _, c := range copies {
		v, version, err := s.Get(ctx, c.Key)
		require.NoError(t, err)
		require.NoError(t, c.Value.Check())
		require.Equal(t, version, c.Version)
		require.Equal(t, v.String(), c.Value.String())
		require.Equal(t, string(v.Data), string(c.Value.Data))
	}
	changed, err = s.Pull(ctx, copies)
	require.NoError(t, err)
	require.Zero(t, changed)
	before := &copies[1].Value.Data[0]
	require.NoError(t, s.Push(ctx, Gradient{"p", tensor(t, []float32{2, 2, 2, 2}, 2, 2)}))
	copies[2].Value.Data[0] = 'x' // Pull must not write what has not changed
	changed, err = s.Pull(ctx, copies)
	require.NoError(t, err)
	require.Equal(t, 1, changed)
	require.Equal(t, []float32{6, 7, 8, 5}, floats(t, copies[1].Value))
	require.Same(t, before, &copies[1].Value.Data[0])
	require.Equal(t, "xonger", string(copies[2].Value.Data))
	copies[1].Key, copies[1].Version = "a b", 0 // a Copy may be used for another key
	_, err = s.Pull(ctx, copies)
	require.NoError(t, err)
	require.Equal(t, store.Raw([]byte("\x00text")), copies[1].Value)
	changed, err = s.Pull(ctx, nil)
	require.NoError(t, err)
	require.Zero(t, changed)
}

// testMistakes refuses gradients. Nothing changes, and the store still works.
func testMistakes(t *testing.T, ctx context.Context, s Store) {
	before, version, err := s.Get(ctx, "p")
	require.NoError(t, err)
	fine := tensor(t, make([]float32, 4), 2, 2)
	nan := float32(math.NaN())
	for says, g := range map[string]Gradient{
		`the gradient of "p" must be float32 [2 2], not float32 [4]`:        {"p", tensor(t, make([]float32, 4))},
		`the gradient of "p" must be float32 [2 2], not float64 [2 2]`:      {"p", tensor(t, make([]float64, 4), 2, 2)},
		`the gradient of "p" is not finite: lower the learn rate`:           {"p", tensor(t, []float32{0, 0, 0, nan}, 2, 2)},
		`"wide" holds float64 [1], and only float32 tensors can be trained`: {"wide", tensor(t, []float64{1})},
		`"ä" holds 6 bytes, and only float32 tensors can be trained`:        {"ä", fine},
		"takes 16 bytes, not 15":                                                {"p", store.Value{Type: store.Float32, Shape: fine.Shape, Data: fine.Data[1:]}},
		"a key must not be empty":                                               {"", fine},
		`a key must be printable UTF-8, not "a\nb"`:                             {"a\nb", fine},
		fmt.Sprintf("a key must have at most %d bytes, not 2000", store.MaxKey): {strings.Repeat("k", 2000), fine},
		`the gradient of "p" must be float32 [2 2], not 3 bytes`:                {"p", store.Raw([]byte("abc"))},
		`a shape must have at most 8 dimensions, not 9`:                         {"p", store.Value{Type: store.Float32, Shape: make([]int, 9)}},
	} {
		err := s.Push(ctx, g)
		require.ErrorIs(t, err, store.ErrRefused)
		require.ErrorContains(t, err, says)
		require.NotContains(t, err.Error(), "\n")
	}
	for _, err := range []error{
		s.Push(ctx, Gradient{"unknown", fine}),
		func() error { _, err := s.Pull(ctx, []Copy{{Key: "p"}, {Key: "unknown"}}); return err }(),
	} {
		require.ErrorIs(t, err, store.ErrNotFound)
		require.ErrorContains(t, err, `"unknown"`)
	}
	after, now, err := s.Get(ctx, "p")
	require.NoError(t, err)
	require.Equal(t, version, now)
	require.Equal(t, before, after)
	err = s.Push(ctx, Gradient{"p", fine}, Gradient{"p", tensor(t, []float32{nan, 0, 0, 0}, 2, 2)})
	require.ErrorContains(t, err, "not finite")
	_, now, err = s.Get(ctx, "p")
	require.NoError(t, err)
	require.Equal(t, version+1, now, "the gradient before the mistake is applied")
}

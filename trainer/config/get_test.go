package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/config"
)

func TestGetters(t *testing.T) {
	c := parse(t, "[a]\ni = 3\nf = 0.5\nw = 1e3\nb = true\nz = 0\ns = \"x\"\nyear = 2024\nn = null\nk.l = 4\n[a.sub]\no = {\"p\": 5}")
	i, err := c.Int("a.i", 9)
	require.NoError(t, err)
	require.Equal(t, 3, i)
	i, err = c.Int("a.w", 9)
	require.NoError(t, err)
	require.Equal(t, 1000, i)
	for _, absent := range []string{"a.none", "none.i", "a.n", "a.i.deeper", ""} {
		i, err = c.Int(absent, 9)
		require.NoError(t, err, absent)
		require.Equal(t, 9, i, absent)
	}
	i, err = c.Int("a.sub.o.p", 0)
	require.NoError(t, err)
	require.Equal(t, 5, i)
	i, err = c.Int("a.k.l", 0)
	require.NoError(t, err)
	require.Equal(t, 4, i)
	s, err := c.String("a.year", "")
	require.NoError(t, err)
	require.Equal(t, "2024", s)
	for path, want := range map[string]bool{"a.sub": true, "a.n": true, "a.none": false} {
		_, found := c.Entry(path)
		require.Equal(t, want, found, path)
	}
	root, ok := c.Section("")
	require.True(t, ok)
	require.Equal(t, []string{"a"}, root.Keys())
	_, ok = c.Section("a.i")
	require.False(t, ok)
}

func TestGettersNameTheLine(t *testing.T) {
	c := parse(t, "[a]\ni = abc\nf = 0.5\nbig = 1e30\nb = 2\nl = [1]\n[a.s]")
	_, err := c.Int("a.i", 0)
	require.EqualError(t, err, `test.cfg:2: a.i: expected a whole number, got the string "abc"`)
	_, err = c.Int("a.f", 0)
	require.EqualError(t, err, "test.cfg:3: a.f: expected a whole number, got 0.5")
	_, err = c.Int("a.big", 0)
	require.ErrorContains(t, err, "test.cfg:4")
	_, err = c.String("a.l", "")
	require.EqualError(t, err, "test.cfg:6: a.l: expected a string, got the list [1]")
	_, err = c.Int("a.s", 0)
	require.EqualError(t, err, "test.cfg:7: a.s: expected a whole number, got a section")
}

func TestCheckKeys(t *testing.T) {
	c := parse(t, "[training]\niterations = 1\nbatchsize = 2\n[trian]\n")
	require.NoError(t, c.CheckKeys("training", "iterations", "batchsize"))
	require.NoError(t, c.CheckKeys("absent", "x"))
	require.EqualError(t, c.CheckKeys("training", "iterations", "batch_size"),
		`test.cfg:3: section [training] has no key "batchsize"; did you mean "batch_size"?`)
	require.EqualError(t, c.CheckKeys("training", "zzz", "aaa"),
		`test.cfg:2: section [training] has no key "iterations"; valid names are aaa, zzz`)
	require.EqualError(t, c.CheckKeys("", "training", "train"), `test.cfg:4: there is no section [trian]; did you mean "train"?`)
	require.ErrorAs(t, c.CheckKeys("", "x"), new(*config.Error))
}

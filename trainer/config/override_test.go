package config_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/config"
)

func TestSplitOverrides(t *testing.T) {
	type o = config.Override
	flags := func(name string) bool { return name == "log.level" || name == "workers" }
	for name, c := range map[string]struct {
		args, rest []string
		want       []o
	}{
		"spaCy's own test":      {[]string{"--x.foo", "10.1", "--x.bar", "--x.baz=false"}, nil, []o{{"x.foo", "10.1"}, {"x.bar", "true"}, {"x.baz", "false"}}},
		"among other arguments": {[]string{"a.cfg", "--workers", "2", "--t.max_steps", "5", "-v", "b"}, []string{"a.cfg", "--workers", "2", "-v", "b"}, []o{{"t.max_steps", "5"}}},
		"a registered name":     {[]string{"--optimizer.@optimizers", "SGD.v1"}, nil, []o{{"optimizer.@optimizers", "SGD.v1"}}},
		"dashes with =":         {[]string{"--training.max-steps=1000", "--a.b-c", "1"}, nil, []o{{"training.max_steps", "1000"}, {"a.b-c", "1"}}},
		"an = in the value":     {[]string{"--a.b=c=d", "--a.c="}, nil, []o{{"a.b", "c=d"}, {"a.c", ""}}},
		"a negative number":     {[]string{"--a.b", "-1"}, nil, []o{{"a.b", "-1"}}},
		"a dotted flag":         {[]string{"--log.level", "debug", "--log.level=info"}, []string{"--log.level", "debug", "--log.level=info"}, nil},
		"after two dashes":      {[]string{"--a.b", "1", "--", "--a.b", "2"}, []string{"--", "--a.b", "2"}, []o{{"a.b", "1"}}},
		"a flag without a dot":  {[]string{"--nodes", "2", "--out=x.y"}, []string{"--nodes", "2", "--out=x.y"}, nil},
		"nothing":               {nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			rest, got, err := config.SplitOverrides(c.args, flags)
			require.NoError(t, err)
			require.Equal(t, c.rest, rest)
			require.Equal(t, c.want, got)
		})
	}
	for _, bad := range []string{"--.x", "--a.", "--a.=1"} {
		_, _, err := config.SplitOverrides([]string{bad}, nil)
		require.ErrorContains(t, err, "not an override; write --section.key value", bad)
	}
}

func TestOverridesReplaceAndAdd(t *testing.T) {
	got := compact(t, "[x]\nfoo = 1\n[m]\n@layers = \"a.v1\"",
		config.Override{Path: "x.foo", Raw: "10.1"}, config.Override{Path: "x.bar", Raw: "true"},
		config.Override{Path: "x.words", Raw: "two words"}, config.Override{Path: "x.list", Raw: "[1, ${x.foo}]"},
		config.Override{Path: "m.@layers", Raw: "b.v1"}, config.Override{Path: "x.foo", Raw: "7"})
	require.JSONEq(t, `{"x":{"foo":7,"bar":true,"words":"two words","list":[1,7]},"m":{"@layers":"b.v1"}}`, got)
}

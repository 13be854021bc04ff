package trainer

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective"
	"github.com/ringtrain/ringtrain/collective/collectivetest"
)

// What differs is named by key, with both values; long ones are compared whole
// and shown shortened.
func TestDifferingDetails(t *testing.T) {
	long := strings.Repeat("x", 1000)
	settings := func(rate, name string, more ...Setting) []detail {
		parts := append([]Setting{{Name: "optimizer.learn_rate", Value: rate}, {Name: "same", Value: "1"}, {Name: "long", Value: name}}, more...)
		return details([]Setting{{Name: "the config", Value: "-", Parts: parts}, {Name: "--seed", Value: rate}})
	}
	got := differingDetails(settings("0.001", long+"a", Setting{Name: "mine", Value: ""}), settings("0.1", long+"b", Setting{Name: "yours", Value: "2"}), "rank 1")
	require.Equal(t, []string{
		"optimizer.learn_rate is 0.001 here and 0.1 on rank 1",
		"long is " + long[:maxDetail] + "... here and " + long[:maxDetail] + "... on rank 1",
		`mine is "" here and not set on rank 1`,
		"--seed is 0.001 here and 0.1 on rank 1",
		"yours is not set here and 2 on rank 1",
	}, got)
	e := &SettingsError{Settings: []string{"the config"}, Names: []string{"rank 1"}, Differences: append(got, got...)}
	require.Equal(t, 4, strings.Count(e.Error(), " here and "))
	require.Contains(t, e.Error(), "; and 6 more: give the same command")
}

// Whatever a config holds, what is sent of it is bounded.
func TestDetailsAreBounded(t *testing.T) {
	var parts []Setting
	for i := range 100_000 {
		parts = append(parts, Setting{Name: fmt.Sprint("key", i), Value: strings.Repeat("\x01", 200)})
	}
	size := 0
	for _, d := range details([]Setting{{Name: "the config", Parts: parts}}) {
		size += 2*len(d.Name) + 6*len(d.Value)
	}
	require.LessOrEqual(t, size, maxDetails)
	require.Greater(t, size, maxDetails/2)
}

// What follows from a setting that differs is not named as well.
func TestDerivedSettings(t *testing.T) {
	for _, c := range []struct {
		seeds, want string
	}{{"01", "seed is "}, {"00", "plan is "}} {
		collectivetest.Ranks(t, 2, func(ctx context.Context, g *collective.Group) {
			err := compareSettings(ctx, g, []Setting{{Name: "seed", Value: c.seeds[g.Rank() : g.Rank()+1]}, {Name: "plan", Value: fmt.Sprint(g.Rank()), Derived: true}})
			var e *SettingsError
			require.ErrorAs(t, err, &e)
			require.Len(t, e.Differences, 1)
			require.Contains(t, e.Differences[0], c.want)
		})
	}
}

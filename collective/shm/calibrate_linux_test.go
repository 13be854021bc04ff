package shm

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/collective/calibration"
)

// A search ends with its context, even if another rank never begins one.
func TestSearchEndsWithItsContext(t *testing.T) {
	p := newHost(t, 2)[0]
	ctx, cancel := context.WithCancel(context.Background())
	go cancel()
	_, err := p.search(ctx, false)
	require.ErrorIs(t, err, context.Canceled)
}

// Nobody searches where the trial calls would not be those of the job, or where they
// would only show how the kernel schedules.
func TestSearches(t *testing.T) {
	for _, c := range []struct {
		policy   calibration.Policy
		searches bool
		want     search
	}{
		{calibration.Policy{}, true, noSearch},
		{calibration.Policy{Mode: calibration.Auto}, true, quickSearch},
		{calibration.Policy{Mode: calibration.Auto}, false, noSearch},
		{calibration.Policy{Mode: calibration.Refine}, true, fullSearch},
		{calibration.Policy{Mode: calibration.Refine}, false, noSearch},
	} {
		choices, from, s := first(&c.policy, 2, c.searches)
		require.Equal(t, calibration.Default(2), choices)
		require.Equal(t, calibration.FromDefault, from)
		require.Equal(t, c.want, s, "%+v", c)
	}
}

func TestRunnable(t *testing.T) {
	for text, want := range map[string]int{"0.20 0.18 0.12 3/80 11206\n": 3, "": 0, "0.20 0.18 0.12": 0, "a b c d": 0} {
		require.Equal(t, want, runnable([]byte(text)), text)
	}
	l := newOtherLoad()
	defer l.close()
	require.False(t, l.competes(1<<20))
	require.False(t, otherLoad{}.competes(1))
}

// A region whose choices are impossible is refused.
func TestCorruptChoices(t *testing.T) {
	p := newHost(t, 2)[0]
	c := calibration.Default(2)
	p.mem.choose(c, calibration.FromStore, quickSearch)
	got, from, s, err := p.mem.chosen()
	require.NoError(t, err)
	require.Equal(t, c, got)
	require.Equal(t, calibration.FromStore, from)
	require.Equal(t, quickSearch, s)
	c.Chunk = 1 << 30
	p.mem.choose(c, calibration.FromStore, quickSearch)
	require.ErrorContains(t, p.calibrate(t.Context(), &Options{}), "corrupt: chunk must be from 16K to 256K, not 1073741824")
}

package paramserver

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/optim"
)

// ownerOf returns the owner of one parameter with 3 elements, padded to 16.
func ownerOf(t *testing.T, quorum int) *owner {
	b := cpu.New(cpu.Options{})
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	o := optim.DefaultSGD(1)
	o.GradClip = optim.Constant(0)
	l := layout{Parameters: []parameter{{Name: "a", Len: 3}}, Slots: o.Slots()}
	return &owner{share: newShare(updater{b, o, ""}, l, []piece{{0, 0, 3}}), quorum: quorum}
}

// push adds a gradient of which all elements are x.
func (o *owner) push(version, rows int, x float32) error {
	gradient := make([]float32, alignment)
	for i := range gradient {
		gradient[i] = x
	}
	return o.add(1, header{version: version, rows: rows}, gradient)
}

// An update has all gradients of the newest version, divided by their rows or not.
func TestOwner(t *testing.T) {
	for _, undivided := range []bool{false, true} {
		o := ownerOf(t, 2)
		require.NoError(t, o.push(0, 3, 8))
		require.False(t, o.due())
		require.NoError(t, o.push(0, 1, 2))
		require.True(t, o.due())
		require.NoError(t, o.push(0, 0, 2), "more than a quorum")
		require.NoError(t, o.update(7, undivided))
		want := float32(-12)
		if !undivided {
			want /= 4
		}
		require.Equal(t, []float32{want, want, want}, o.params.List[0].Values.Float32s())
		require.Equal(t, 8, o.state.Step, "the optimizer counts the steps of the owner")
		require.Equal(t, 1, o.version)
		require.False(t, o.due())

		require.NoError(t, o.push(0, 1, 100), "late")
		require.NoError(t, o.push(1, 1, 1))
		o.end()
		require.Equal(t, Staleness{Applied: 3, Dropped: 1, Unused: 1, Histogram: o.stale.Histogram}, o.stale)
		require.Equal(t, []int{4, 1}, o.stale.Histogram[:2])
		require.InDelta(t, 40, o.stale.Discarded(), 1e-9)
	}
}

// An update without rows changes no value.
func TestOwnerWithoutRows(t *testing.T) {
	o := ownerOf(t, 1)
	require.NoError(t, o.push(0, 0, 5))
	require.NoError(t, o.update(0, false))
	require.Equal(t, make([]float32, 3), o.params.List[0].Values.Float32s())
	require.Equal(t, 1, o.version)
}

// Gradients that no worker of this version sends are errors.
func TestOwnerRefuses(t *testing.T) {
	for _, h := range []header{{version: 1}, {version: -1}, {rows: -1}} {
		err := ownerOf(t, 1).add(4, h, make([]float32, alignment))
		require.ErrorContains(t, err, "worker 4 sends a gradient")
	}
}

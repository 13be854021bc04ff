package launch

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// No kernel has this device or this limiter. ip and tc must still report that in the
// words that lacks looks for.
func TestKernelLacks(t *testing.T) {
	all, err := newNamespaces(1)
	if err != nil {
		t.Skip("no network namespace: ", err)
	}
	space := all[0]
	defer func() { require.NoError(t, space.close()) }()
	tests := []struct{ program, line string }{
		{"ip", "link add x0 type nosuchdevice\n"},
		{"tc", "qdisc add dev lo root nosuchqdisc\n"},
	}
	for _, test := range tests {
		t.Run(test.program, func(t *testing.T) {
			err := space.do(func() error { return batch(t.Context(), test.program, test.line) })
			if errors.Is(err, exec.ErrNotFound) {
				t.Skip(err)
			}
			require.ErrorIs(t, err, ErrNoNamespaces)
			require.ErrorContains(t, err, test.program+": ")
		})
	}
	t.Run("but not a mistake in the command", func(t *testing.T) {
		err := space.do(func() error { return batch(t.Context(), "ip", "link set nobody up\n") })
		if errors.Is(err, exec.ErrNotFound) {
			t.Skip(err)
		}
		require.ErrorContains(t, err, `Cannot find device "nobody"`)
		require.NotErrorIs(t, err, ErrNoNamespaces)
	})
}

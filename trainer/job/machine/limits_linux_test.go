package machine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The narrowest limit of a group and its ancestors applies. Text that is no number is no
// limit.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		cores float64
		bytes uint64
	}{
		{name: "no files"},
		{"no limits", map[string]string{"/a/b/cpu.max": "max 100000", "/a/b/memory.max": "max"}, 0, 0},
		{"half a core", map[string]string{"/a/b/cpu.max": "50000 100000"}, 0.5, 0},
		{"outer is narrower", map[string]string{"/a/b/cpu.max": "400000 100000", "/a/cpu.max": "200000 100000", "/a/b/memory.max": "4096", "/a/memory.max": "1024"}, 2, 1024},
		{"inner is narrower", map[string]string{"/a/b/cpu.max": "100000 100000", "/a/cpu.max": "200000 100000", "/a/b/memory.max": "512", "/a/memory.max": "1024"}, 1, 512},
		{"the root counts", map[string]string{"/cpu.max": "300000 100000", "/memory.max": "7"}, 3, 7},
		{"a neighbour does not", map[string]string{"/c/cpu.max": "100000 100000", "/c/memory.max": "7"}, 0, 0},
		{"no period", map[string]string{"/a/b/cpu.max": "100000", "/a/cpu.max": "100000 0"}, 0, 0},
	} {
		cores, bytes := limits("/a/b", func(name string) string { return c.files[name[len(controlGroups):]] })
		require.InDelta(t, c.cores, cores, 1e-12, c.name)
		require.Equal(t, c.bytes, bytes, c.name)
	}
}

// Lines of control groups of version 1 are ignored.
func TestOwnGroup(t *testing.T) {
	require.Equal(t, "/", ownGroup([]byte("12:memory:/docker/x\n1:cpu:/docker/x\n")))
	require.Equal(t, "/user.slice", ownGroup([]byte("12:memory:/docker/x\n0::/user.slice\n")))
}

func TestMeminfoIncomplete(t *testing.T) {
	total, available := meminfo([]byte("MemTotal: x kB\nMemAvailable:\n"))
	require.Zero(t, total)
	require.Zero(t, available)
	_, available = meminfo([]byte("MemTotal: 9 kB\n")) // kernels before 3.14
	require.Zero(t, available)
}

package machine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKernelFiles(t *testing.T) {
	for list, want := range map[string]int{"0": 1, "0-3": 4, "0-1,4,6-7": 5, "": 0, "x": 0, "3-1": 0} {
		require.Equal(t, want, countRanges(list), list)
	}
	total, available := meminfo([]byte("MemTotal:  16 kB\nMemFree: 1 kB\nMemAvailable: 8 kB\nHugePages_Total: 0\nbroken\n"))
	require.EqualValues(t, 16<<10, total)
	require.EqualValues(t, 8<<10, available)
	require.Equal(t, "/a/b", ownGroup([]byte("1:name=x:/y\n0::/a/b\n")))
	require.Equal(t, "/", ownGroup(nil))

	files := map[string]string{
		"/sys/fs/cgroup/a/b/cpu.max": "max 100000", "/sys/fs/cgroup/a/cpu.max": "150000 100000", "/sys/fs/cgroup/cpu.max": "400000 100000",
		"/sys/fs/cgroup/a/b/memory.max": "2048", "/sys/fs/cgroup/a/memory.max": "1024", "/sys/fs/cgroup/memory.max": "max",
	}
	cores, bytes := limits("/a/b", func(name string) string { return files[name] })
	require.InDelta(t, 1.5, cores, 1e-9, "the narrowest around")
	require.EqualValues(t, 1024, bytes)
	cores, bytes = limits("/", func(string) string { return "" })
	require.Zero(t, cores)
	require.Zero(t, bytes)
}

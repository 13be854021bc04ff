package shm

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// The available memory is the least of what the machine and each control group,
// of version 1 or 2, have left.
func TestAvailable(t *testing.T) {
	const meminfo = "MemTotal: 4000 kB\nMemFree: 1000 kB\nMemAvailable:    2000 kB\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  uint64
	}{
		{"the machine", map[string]string{"proc/self/cgroup": "0::/\n"}, 2000 << 10},
		{"no limit", map[string]string{"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": "max\n"}, 2000 << 10},
		{"a container", map[string]string{
			"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "500000\n", "sys/fs/cgroup/memory.current": "100000\n",
		}, 400_000},
		{"a group above", map[string]string{
			"proc/self/cgroup":                        "0::/slice/job/step\n",
			"sys/fs/cgroup/slice/job/step/memory.max": "900000\n", "sys/fs/cgroup/slice/job/step/memory.current": "100000\n",
			"sys/fs/cgroup/slice/job/memory.max": "600000\n", "sys/fs/cgroup/slice/job/memory.current": "400000\n",
			"sys/fs/cgroup/slice/job/memory.stat": "anon 1\ninactive_file 50000\nactive_file 7\n",
		}, 250_000},
		{"version 1", map[string]string{
			"proc/self/cgroup": "4:memory:/a/b\n3:cpuset:/\n0::/\n",
			"sys/fs/cgroup/memory/a/b/memory.limit_in_bytes": "300000\n", "sys/fs/cgroup/memory/a/b/memory.usage_in_bytes": "100000\n",
			"sys/fs/cgroup/memory/a/b/memory.stat":       "inactive_file 7\ntotal_inactive_file 1000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 201_000},
		{"version 1 under the host's names", map[string]string{
			"proc/self/cgroup":                           "4:memory:/docker/123\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "300000\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "400000\n",
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			system := fstest.MapFS{"proc/meminfo": {Data: []byte(meminfo)}}
			for name, text := range c.files {
				system[name] = &fstest.MapFile{Data: []byte(text)}
			}
			require.Equal(t, c.want, available(system))
		})
	}
}

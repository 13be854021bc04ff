package machine

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestCountRanges(t *testing.T) {
	for list, want := range map[string]int{"0": 1, "0-3": 4, "0-1,4,6-7": 5, "": 0, "x": 0, "3-1": 0} {
		require.Equal(t, want, countRanges(list), list)
	}
}

// A Machine has what the kernel's files say, and the narrowest limits of its control
// groups, of version 1 or 2.
func TestInquire(t *testing.T) {
	inquire := func(files map[string]string) (m Machine) {
		system := fstest.MapFS{}
		for name, text := range files {
			system[name] = &fstest.MapFile{Data: []byte(text)}
		}
		m.inquire(system)
		require.NotEmpty(t, m.Kernel)
		m.Kernel = ""
		return m
	}
	require.Zero(t, inquire(nil))
	machine := map[string]string{
		"proc/meminfo":                  "MemTotal: 16 kB\nMemAvailable: 8 kB\n",
		"sys/devices/system/cpu/online": "0-3\n",
		"sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
	}
	want := Machine{Online: 4, Memory: 16 << 10, Available: 8 << 10, Clock: "tsc"}
	require.Equal(t, want, inquire(machine))

	machine["proc/self/cgroup"] = "4:memory:/a/b\n3:cpu,cpuacct:/a\n0::/u\n"
	require.Equal(t, want, inquire(machine), "groups without limits")
	machine["sys/fs/cgroup/memory/a/memory.limit_in_bytes"] = "8192\n"
	machine["sys/fs/cgroup/memory/memory.limit_in_bytes"] = "9223372036854771712\n"
	want.Limit = 8192
	require.Equal(t, want, inquire(machine), "version 1")
	machine["sys/fs/cgroup/u/cpu.max"] = "150000 100000\n"
	machine["sys/fs/cgroup/memory.max"] = "4096\n"
	want.Quota, want.Limit = 1.5, 4096
	require.Equal(t, want, inquire(machine), "both versions")
	require.EqualValues(t, 4096, inquire(machine).room())
}

package procfs

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const none = math.MaxUint64

// The narrowest limit of a group and those above it applies. Text that is no number is no
// limit.
func TestGroup(t *testing.T) {
	const v1 = "4:memory:/a/b\n3:cpuset:/\n1:name=systemd:/c\n"
	for _, c := range []struct {
		name        string
		group       string // /proc/self/cgroup; "" for a group of version 2
		files       map[string]string
		cores       float64
		limit, room uint64
	}{
		{"no files", "", nil, 0, none, none},
		{"no limits", "", map[string]string{"/a/b/cpu.max": "max 100000", "/a/b/memory.max": "max"}, 0, none, none},
		{"half a core", "", map[string]string{"/a/b/cpu.max": "50000 100000"}, 0.5, none, none},
		{"outer is narrower", "", map[string]string{"/a/b/cpu.max": "400000 100000", "/a/cpu.max": "200000 100000", "/a/b/memory.max": "4096", "/a/memory.max": "1024"}, 2, 1024, 1024},
		{"inner is narrower", "", map[string]string{"/a/b/cpu.max": "100000 100000", "/a/cpu.max": "200000 100000", "/a/b/memory.max": "512", "/a/memory.max": "1024"}, 1, 512, 512},
		{"the root counts", "", map[string]string{"/cpu.max": "300000 100000", "/memory.max": "7"}, 3, 7, 7},
		{"a neighbour does not", "", map[string]string{"/c/cpu.max": "100000 100000", "/c/memory.max": "7"}, 0, none, none},
		{"no period", "", map[string]string{"/a/b/cpu.max": "100000", "/a/cpu.max": "100000 0"}, 0, none, none},
		{"outer has less room", "", map[string]string{
			"/a/b/memory.max": "900", "/a/b/memory.current": "100",
			"/a/memory.max": "1000", "/a/memory.current": "700", "/a/memory.stat": "anon 1\ninactive_file 50\nactive_file 7\n",
		}, 0, 900, 350},
		{"full", "", map[string]string{"/memory.max": "7", "/memory.current": "8", "/memory.stat": "inactive_file 0"}, 0, 7, 0},
		{"more droppable than used", "", map[string]string{"/memory.max": "7", "/memory.current": "3", "/memory.stat": "inactive_file 4"}, 0, 7, 7},
		{"version 1", v1, map[string]string{
			"/memory/a/b/memory.limit_in_bytes": "3000\n", "/memory/a/b/memory.usage_in_bytes": "1000\n",
			"/memory/a/b/memory.stat":       "inactive_file 7\ntotal_inactive_file 10\n",
			"/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 0, 3000, 2010},
		{"version 1, no limits, with pages of 64 KiB", v1, map[string]string{"/memory/a/b/memory.limit_in_bytes": "9223372036854710272\n"}, 0, none, none},
		{"version 1, seen from within a container", v1, map[string]string{"/memory/memory.limit_in_bytes": "3000\n"}, 0, 3000, 3000},
		{"version 1 has no file of version 2", v1, map[string]string{"/a/b/memory.max": "7", "/a/b/cpu.max": "1 1"}, 0, none, none},
	} {
		files := map[string]string{"proc/self/cgroup": c.group}
		if c.group == "" {
			files["proc/self/cgroup"] = "0::/a/b\n"
		}
		for name, text := range c.files {
			files["sys/fs/cgroup"+name] = text
		}
		n := 0
		for g := range Groups(system(files)) {
			if c.cores == 0 {
				require.True(t, math.IsInf(g.Quota(), 1), c.name)
			} else {
				require.InDelta(t, c.cores, g.Quota(), 1e-12, c.name)
			}
			require.Equal(t, c.limit, g.Limit(), c.name)
			require.Equal(t, c.room, g.Room(), c.name)
			n++
		}
		require.Equal(t, 1, n, c.name)
	}
}

// A name cannot lead out of the hierarchy, and groups of both versions are found.
func TestGroups(t *testing.T) {
	var paths []string
	for g := range Groups(system(map[string]string{"proc/self/cgroup": "5:cpu:/x\n4:memory:/docker/1\nbroken\n0::/../../etc\n"})) {
		paths = append(paths, g.files.mount+g.path)
	}
	require.Equal(t, []string{"sys/fs/cgroup/memory/docker/1", "sys/fs/cgroup/etc"}, paths)
}

// The limits of a control group are at most those of its parents, at any depth, and those
// of its children do not matter.
func FuzzLimits(f *testing.F) {
	f.Add(uint8(3), uint8(1), "100000 50000", "4096")
	f.Add(uint8(0), uint8(0), "max 100000", "max")
	f.Fuzz(func(t *testing.T, depth, at uint8, cpu, memory string) {
		at, depth = at%16, depth%16
		limited := "sys/fs/cgroup" + strings.Repeat("/g", int(at))
		files := map[string]string{
			"proc/self/cgroup":      "0::/" + strings.Repeat("g/", int(depth)),
			limited + "/cpu.max":    cpu,
			limited + "/memory.max": memory,
		}
		for g := range Groups(system(files)) {
			if at > depth && (!math.IsInf(g.Quota(), 1) || g.Limit() != none) {
				t.Errorf("%s has the limits of its child %s", g.path, limited)
			}
			if g.Room() != g.Limit() {
				t.Errorf("%s uses nothing, and has room for %d bytes instead of %d", g.path, g.Room(), g.Limit())
			}
		}
	})
}

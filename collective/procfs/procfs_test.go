package procfs

import (
	"maps"
	"math"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func system(files map[string]string) fstest.MapFS {
	s := fstest.MapFS{}
	for name, text := range files {
		s[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return s
}

func TestLine(t *testing.T) {
	s := system(map[string]string{"sys/kernel/a": " one\n"})
	require.Equal(t, "one", Line(s, "sys/kernel/a"))
	require.Empty(t, Line(s, "sys/kernel/b"))
	require.Empty(t, Line(s, "sys/kernel"))
}

// Only the first processor counts, however many there are.
func TestProcessor(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"":    {},
		"x":   {},
		"a:b": {"a": "b"},
		"processor\t: 0\nmodel name\t: Intel: Xeon\nflags\t\t:\n\nprocessor\t: 1\nmodel name\t: other\n": {"processor": "0", "model name": "Intel: Xeon", "flags": ""},
		"a: 1\n\n" + strings.Repeat("b: 2\n", mostProcessor):                                             {"a": "1"},
	} {
		require.Equal(t, want, maps.Collect(Processor(system(map[string]string{"proc/cpuinfo": text}))))
	}
	require.Empty(t, maps.Collect(Processor(fstest.MapFS{})))
	for name := range Processor(system(map[string]string{"proc/cpuinfo": "a: 1\nb: 2\n"})) {
		require.Equal(t, "a", name)
		break
	}
}

func TestMemory(t *testing.T) {
	for text, want := range map[string][2]uint64{
		"MemTotal:  16 kB\nMemFree: 1 kB\nMemAvailable: 8 kB\nHugePages_Total: 0\nbroken\n": {16 << 10, 8 << 10},
		"MemTotal: x kB\nMemAvailable:\n":                     {},
		"MemTotal: 9 kB\n":                                    {9 << 10, 0}, // kernels before 3.14
		"MemTotal: 18446744073709551615 kB\n":                 {},
		"MemTotal: -1 kB\nMemAvailable: 18014398509481984 kB": {},
		"": {},
	} {
		total, available, err := Memory(system(map[string]string{"proc/meminfo": text}))
		require.NoError(t, err)
		require.Equal(t, want, [2]uint64{total, available}, "%q", text)
	}
	_, _, err := Memory(fstest.MapFS{})
	require.Error(t, err)
}

// Without files there are no groups, and no limits.
func TestGroupsWithoutFiles(t *testing.T) {
	for range Groups(fstest.MapFS{}) {
		t.Error("a group without /proc")
	}
	for g := range Groups(system(map[string]string{"proc/self/cgroup": "0::/a\n"})) {
		require.EqualValues(t, uint64(math.MaxUint64), g.Limit())
		require.EqualValues(t, uint64(math.MaxUint64), g.Room())
		require.True(t, math.IsInf(g.Quota(), 1))
	}
}

package calibration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStore(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	s := &Store{Dir: dir, Host: Host{CPU: "a", Cores: 2, Kernel: "6", Hypervisor: "h"}, Version: "1"}
	_, ok := s.Load(2)
	require.False(t, ok)
	c := Kept{Choices: Default(2), Done: 3}
	c.Choices.Chunk = 64 << 10
	require.NoError(t, s.Save(2, c))
	got, ok := s.Load(2)
	require.True(t, ok)
	require.Equal(t, c, got)
	c.Choices.Chunk, c.Done = 128<<10, Experiments
	require.NoError(t, s.Save(2, c), "a second Save replaces the file")
	got, _ = s.Load(2)
	require.Equal(t, c, got)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file is left")

	for name, change := range map[string]func(*Store){
		"CPU":        func(s *Store) { s.Host.CPU = "b" },
		"cores":      func(s *Store) { s.Host.Cores = 4 },
		"kernel":     func(s *Store) { s.Host.Kernel = "7" },
		"hypervisor": func(s *Store) { s.Host.Hypervisor = "i" },
		"version":    func(s *Store) { s.Version = "2" },
		"directory":  func(s *Store) { s.Dir = t.TempDir() },
	} {
		other := *s
		change(&other)
		_, ok := other.Load(2)
		require.False(t, ok, name)
	}
	_, ok = s.Load(3)
	require.False(t, ok)
}

// A file that cannot be used is as good as none.
func TestBadFiles(t *testing.T) {
	s := &Store{Dir: t.TempDir(), Version: "1"}
	require.NoError(t, s.Save(2, Kept{Choices: Default(2)}))
	good, err := os.ReadFile(s.path(2))
	require.NoError(t, err)
	for name, text := range map[string]string{
		"empty":             "",
		"half":              string(good[:len(good)/2]),
		"another format":    strings.Replace(string(good), format, "ringtrain-calibration/1", 1),
		"another key":       strings.Replace(string(good), `"version": "1"`, `"version": "2"`, 1),
		"impossible choice": strings.Replace(string(good), `"chunk": 131072`, `"chunk": 131073`, 1),
		"impossible count":  strings.Replace(string(good), `"done": 0`, `"done": -1`, 1),
		"too large":         string(good) + strings.Repeat(" ", mostFile),
	} {
		require.NotEqual(t, string(good), text, name)
		require.NoError(t, os.WriteFile(s.path(2), []byte(text), 0o600))
		_, ok := s.Load(2)
		require.False(t, ok, name)
	}
	require.NoError(t, os.WriteFile(s.path(2), good, 0o600))
	_, ok := s.Load(2)
	require.True(t, ok)
	require.NoError(t, os.Chmod(s.path(2), 0o620))
	_, ok = s.Load(2)
	require.False(t, ok, "others could have written it")
	require.NoError(t, os.Remove(s.path(2)))
	require.NoError(t, os.Mkdir(s.path(2), 0o700))
	_, ok = s.Load(2)
	require.False(t, ok, "a directory")
	require.Error(t, s.Save(2, Kept{Choices: Default(2)}))
	entries, err := os.ReadDir(s.Dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "no temporary file is left")
}

// Killed processes leave temporary files behind, and Save removes them.
func TestSaveSweeps(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	for _, path := range []string{s.path(2), s.linkPath(linkKey{})} {
		left := path + ".X.tmp"
		require.NoError(t, os.WriteFile(left, nil, 0o600))
		old := time.Now().Add(-2 * time.Hour)
		require.NoError(t, os.Chtimes(left, old, old))
	}
	require.NoError(t, s.Save(2, Kept{Choices: Default(2)}))
	entries, err := os.ReadDir(s.Dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
}

func TestNoStore(t *testing.T) {
	for _, s := range []*Store{nil, {}} {
		_, ok := s.Load(2)
		require.False(t, ok)
		require.NoError(t, s.Save(2, Kept{Choices: Default(2)}))
	}
	blocked := &Store{Dir: filepath.Join(os.DevNull, "x")}
	require.Error(t, blocked.Save(2, Kept{Choices: Default(2)}))
}

// The stages of the ranks of a core fill its L2 cache.
func TestFirstChunk(t *testing.T) {
	for _, c := range []struct{ cache, cores, ranks, want int }{
		{512 << 10, 2, 2, 128 << 10},
		{512 << 10, 2, 4, 64 << 10},
		{1 << 20, 2, 2, 256 << 10},
		{1 << 20, 2, 4, 128 << 10},
		{1 << 20, 2, 3, 128 << 10},
		{1280 << 10, 8, 16, 160 << 10},
		{2 << 20, 64, 2, MostChunk},
		{256 << 10, 2, 64, 32 << 10},
		{0, 2, 2, 128 << 10},
		{0, 2, 4, 64 << 10},
	} {
		p := Policy{Store: &Store{Host: Host{Cache: c.cache, Cores: c.cores}}}
		start := p.Start(c.ranks)
		require.Equal(t, c.want, start.Chunk, "%+v", c)
		require.NoError(t, start.Check())
	}
	require.Equal(t, Default(3), (&Policy{}).Start(3))
}

func TestThisHost(t *testing.T) {
	system := fstest.MapFS{
		"proc/cpuinfo":                                   {Data: []byte("processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC\nstepping\t: 1\ncpu MHz\t\t: 2445.4\ncache size\t: 512 KB\n\nprocessor\t: 1\nvendor_id\t: other\n")},
		"proc/sys/kernel/osrelease":                      {Data: []byte("6.18.44\n")},
		"proc/sys/kernel/version":                        {Data: []byte("#1 SMP\n")},
		"sys/devices/system/cpu/cpu0/cache/index1/level": {Data: []byte("1\n")},
		"sys/devices/system/cpu/cpu0/cache/index1/type":  {Data: []byte("Data\n")},
		"sys/devices/system/cpu/cpu0/cache/index1/size":  {Data: []byte("32K\n")},
		"sys/devices/system/cpu/cpu0/cache/index2/level": {Data: []byte("2\n")},
		"sys/devices/system/cpu/cpu0/cache/index2/type":  {Data: []byte("Unified\n")},
		"sys/devices/system/cpu/cpu0/cache/index2/size":  {Data: []byte("1024K\n")},
		"sys/class/dmi/id/sys_vendor":                    {Data: []byte("QEMU\n")},
		"sys/class/dmi/id/product_name":                  {Data: []byte("Standard PC\n")},
	}
	h := ThisHost(system)
	require.Contains(t, h.CPU, ", vendor_id AuthenticAMD, cpu family 25, model 1, model name AMD EPYC, stepping 1, cache size 512 KB")
	require.NotContains(t, h.CPU, "other")
	require.NotContains(t, h.CPU, "MHz")
	require.Equal(t, "6.18.44 #1 SMP", h.Kernel)
	require.Equal(t, "QEMU Standard PC", h.Hypervisor)
	require.Positive(t, h.Cores)
	require.Equal(t, 1<<20, h.Cache)
	require.NotPanics(t, func() { ThisHost(fstest.MapFS{}) })
}

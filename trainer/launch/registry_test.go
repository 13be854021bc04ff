//go:build unix

package launch

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// isolateRegistry gives a test its own registry and returns its two directories.
func isolateRegistry(t *testing.T) (runtime, temporary string) {
	runtime, temporary = t.TempDir(), t.TempDir()
	t.Setenv("XDG_RUNTIME_DIR", runtime)
	t.Setenv("TMPDIR", temporary)
	dirs := registryDirs()
	require.Len(t, dirs, 2)
	require.Equal(t, filepath.Join(runtime, "ringtrain"), dirs[0])
	require.Equal(t, temporary, filepath.Dir(dirs[1]))
	return dirs[0], dirs[1]
}

func listing(cluster string) Listing {
	return Listing{
		Launcher: Self(), Started: time.Unix(1e9, 0).UTC(), Command: "ringtrain train x.cfg", Cluster: cluster, KeyFile: "/k",
		Nodes: 1, Node: "n-1", Workers: []Listed{{Local: 0, Gossip: "127.0.0.1:7", Process: Self()}},
	}
}

func clusters(t *testing.T) (names []string) {
	all, err := Listings()
	require.NoError(t, err)
	for _, l := range all {
		names = append(names, l.Cluster)
	}
	return names
}

func TestRegistry(t *testing.T) {
	dir, _ := isolateRegistry(t)
	require.Empty(t, clusters(t))
	l := listing("a")
	a, err := Register(l)
	require.NoError(t, err)
	later := listing("b")
	later.Started = later.Started.Add(time.Second)
	b, err := Register(later)
	require.NoError(t, err)
	all, err := Listings()
	require.NoError(t, err)
	require.Equal(t, []Listing{l, later}, all)

	l.Job = "0123"
	require.NoError(t, a.Update(l))
	all, err = Listings()
	require.NoError(t, err)
	require.Equal(t, []Listing{l, later}, all)

	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	require.NoError(t, a.Remove())
	require.NoError(t, a.Remove(), "a second Remove is harmless")
	require.Equal(t, []string{"b"}, clusters(t))
	require.NoError(t, b.Remove())
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, files)
}

// A killed launcher leaves its listing behind, and the next reader or the next job
// removes it. Other files and listings of other machines stay.
func TestRegistryTidiesUp(t *testing.T) {
	dir, _ := isolateRegistry(t)
	require.NoError(t, os.Mkdir(dir, 0o700))
	write := func(name string, l Listing) string {
		text, err := json.Marshal(l)
		require.NoError(t, err)
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, text, 0o600))
		return path
	}
	dead, foreign := listing("dead"), listing("foreign")
	dead.Launcher.Start++ // a dead process whose pid this process has reused
	foreign.Launcher.Host += "x"
	if dead.Launcher.State() != Dead {
		t.Skip("this system does not report start times")
	}
	gone, kept, half := write("1-dead.json", dead), write("2-foreign.json", foreign), write("3-half.new", dead)
	other := filepath.Join(dir, "note.json")
	require.NoError(t, os.WriteFile(other, []byte("{"), 0o600))
	require.Empty(t, clusters(t))
	require.NoFileExists(t, gone)
	for _, path := range []string{kept, half, other} {
		require.FileExists(t, path)
	}

	write("1-dead.json", dead)
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(half, old, old))
	r, err := Register(listing("live"))
	require.NoError(t, err)
	require.NoFileExists(t, gone)
	require.NoFileExists(t, half)
	require.Equal(t, []string{"live"}, clusters(t))
	require.NoError(t, r.Remove())
}

// If the first directory is unusable, the second is used, for writing and reading.
func TestRegistryWithoutRuntimeDirectory(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, dir string){
		"unset":    func(t *testing.T, _ string) { t.Setenv("XDG_RUNTIME_DIR", "") },
		"relative": func(t *testing.T, _ string) { t.Setenv("XDG_RUNTIME_DIR", "run") },
		"missing":  func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Dir(dir))) },
		"writable by others": func(t *testing.T, dir string) {
			require.NoError(t, os.Chmod(filepath.Dir(dir), 0o777)) // instead of chown, which needs root
		},
		"open":   func(t *testing.T, dir string) { require.NoError(t, os.Mkdir(dir, 0o755)) },
		"a file": func(t *testing.T, dir string) { require.NoError(t, os.WriteFile(dir, nil, 0o600)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, second := isolateRegistry(t)
			spoil(t, dir)
			r, err := Register(listing("a"))
			require.NoError(t, err)
			require.Equal(t, second, r.dir)
			all, _ := Listings() // fails for the unusable directory
			require.True(t, slices.ContainsFunc(all, func(l Listing) bool { return l.Started.Equal(listing("a").Started) }))
			require.NoError(t, r.Remove())
		})
	}
}

// Links and files that another user may have placed there are neither followed
// nor written to.
func TestRegistryRejectsLinks(t *testing.T) {
	dir, second := isolateRegistry(t)
	target := t.TempDir()
	for _, path := range []string{dir, second} {
		require.NoError(t, os.Symlink(target, path))
	}
	_, err := Register(listing("a"))
	require.ErrorContains(t, err, dir+" is not a directory")
	require.ErrorContains(t, err, second+" is not a directory")
	all, err := Listings()
	require.ErrorContains(t, err, "is not a directory")
	require.Empty(t, all)
	files, err := os.ReadDir(target)
	require.NoError(t, err)
	require.Empty(t, files)
}

func TestCheckPrivate(t *testing.T) {
	dir := t.TempDir()
	check := func() error {
		info, err := os.Lstat(dir)
		require.NoError(t, err)
		return checkPrivate(dir, info)
	}
	require.NoError(t, os.Chmod(dir, 0o700))
	require.NoError(t, check())
	require.NoError(t, os.Chmod(dir, 0o710))
	require.ErrorContains(t, check(), "chmod 700")
	require.True(t, ownedByUser(dir))
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(dir, 65534, 65534))
	} else {
		dir = "/"
	}
	require.ErrorContains(t, check(), "belongs to another user")
	require.False(t, ownedByUser(dir))
}

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func touch(t *testing.T, path string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, nil, 0o755))
	return path
}

// A toolkit's library is taken rather than a newer one of Python's packages, of which
// both layouts are known.
func TestFindLibrary(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CUDA_HOME", dir+"/kit")
	t.Setenv("VIRTUAL_ENV", "")
	python := touch(t, dir+"/venv/bin/python3")
	packages := dir + "/venv/lib/python3.12/site-packages"
	old := touch(t, dir+"/kit/lib64/librt-a.so.12")
	touch(t, packages+"/nvidia/cu13/lib/librt-a.so.13")
	thirteen := touch(t, packages+"/nvidia/cu13/lib/librt-b.so.13")
	nccl := touch(t, packages+"/nvidia/nccl/lib/librt-c.so.2")
	require.Equal(t, old, findLibrary([]string{"librt-a.so.13", "librt-a.so.12"}, python))
	require.Equal(t, thirteen, findLibrary([]string{"librt-b.so.13", "librt-b.so.12"}, python))
	require.Equal(t, nccl, findLibrary([]string{"librt-c.so.2"}, python))
	require.Empty(t, findLibrary([]string{"librt-d.so.1"}, python))
	require.Empty(t, findLibrary([]string{"librt-c.so.2"}, ""))
	t.Setenv("VIRTUAL_ENV", dir+"/venv")
	require.Equal(t, nccl, findLibrary([]string{"librt-c.so.2"}, ""))

	require.False(t, hasTorch(python))
	require.False(t, hasTorch(""))
	touch(t, packages+"/torch/__init__.py")
	require.True(t, hasTorch(python))
	require.Equal(t, python, findPython())
}

func TestLibrariesOfTheEnvironment(t *testing.T) {
	t.Setenv("RINGTRAIN_NCCL_LIB", "/given/libnccl.so.2")
	t.Setenv("LD_LIBRARY_PATH", "/before")
	env := (&visit{}).libraries()
	require.Contains(t, env, "RINGTRAIN_NCCL_LIB=/given/libnccl.so.2")
	require.Regexp(t, `^LD_LIBRARY_PATH=.*/given:.*/before$|^LD_LIBRARY_PATH=/given:/before$`, env[len(env)-1])
}

func TestELF(t *testing.T) {
	found, err := filepath.Glob("/lib/*-linux-gnu/libm.so.6")
	require.NoError(t, err)
	if len(found) == 0 {
		t.Skip("there is no libm.so.6 to look at")
	}
	about, err := dynamic(found[0])
	require.NoError(t, err)
	require.Regexp(t, "^SONAME libm.so.6; NEEDED libc.so.6", about)
	missing, err := lacking("# a list\nown cosf\ncu noSuch_v2 noSuch\nown nothing sinf\nlink notCalled\n", found[0])
	require.NoError(t, err)
	require.Equal(t, []string{"noSuch_v2"}, missing)
	_, err = lacking("", "libraries.go")
	require.Error(t, err)
}

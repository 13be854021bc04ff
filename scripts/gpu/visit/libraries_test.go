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

// A toolkit's library is preferred to a newer one in Python packages. Both layouts of these
// packages are found.
func TestFindLibrary(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CUDA_HOME", dir+"/kit")
	t.Setenv("VIRTUAL_ENV", "")
	packages := dir + "/venv/lib/python3.12/site-packages"
	p := python{paths: []string{dir + "/elsewhere", packages}}
	old := touch(t, dir+"/kit/lib64/librt-a.so.12")
	touch(t, packages+"/nvidia/cu13/lib/librt-a.so.13")
	thirteen := touch(t, packages+"/nvidia/cu13/lib/librt-b.so.13")
	nccl := touch(t, packages+"/nvidia/nccl/lib/librt-c.so.2")
	require.Equal(t, old, findLibrary([]string{"librt-a.so.13", "librt-a.so.12"}, 0, p))
	require.Equal(t, thirteen, findLibrary([]string{"librt-b.so.13", "librt-b.so.12"}, 0, p))
	require.Equal(t, nccl, findLibrary([]string{"librt-c.so.2"}, 0, p))
	require.Empty(t, findLibrary([]string{"librt-d.so.1"}, 0, p))
	require.Empty(t, findLibrary([]string{"librt-c.so.2"}, 0, python{}))
	t.Setenv("VIRTUAL_ENV", dir+"/venv")
	require.Equal(t, nccl, findLibrary([]string{"librt-c.so.2"}, 0, python{}), "without an interpreter")
}

// Versions newer than the driver are taken only if there is nothing else. Versions of
// directories are compared as numbers.
func TestFindLibraryForTheDriver(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CUDA_HOME", dir+"/kit")
	t.Setenv("VIRTUAL_ENV", "")
	p := python{paths: []string{dir + "/packages"}}
	thirteen := touch(t, dir+"/kit/lib64/librt-a.so.13")
	twelve := touch(t, dir+"/packages/nvidia/nvrtc/lib/librt-a.so.12")
	both := []string{"librt-a.so.13", "librt-a.so.12"}
	require.Equal(t, twelve, findLibrary(both, 12, p))
	require.Equal(t, thirteen, findLibrary(both, 13, p))
	require.Equal(t, thirteen, findLibrary(both, 0, p), "the driver is unknown")
	require.Equal(t, thirteen, findLibrary(both, 12, python{}), "there is no other")
	require.Equal(t, "/cuda-12.10/lib64", newest([]string{"/cuda-12.10/lib64", "/cuda-12.9/lib64"}))
	require.Equal(t, "/cuda-13.0/lib64", newest([]string{"/cuda-12.10/lib64", "/cuda-13.0/lib64"}))
}

// An interpreter with PyTorch is preferred. Those that do not work are ignored.
func TestFindPython(t *testing.T) {
	dir := t.TempDir()
	interpreter := func(sub, text string) string {
		path := touch(t, dir+sub+"/python3")
		require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755))
		return path
	}
	broken := interpreter("/venv/bin", "exit 1")
	plain := interpreter("/usr", "echo False; echo /usr/packages")
	torch := interpreter("/torch", "echo True; echo /a; echo /b")
	p, works := ask(torch)
	require.True(t, works)
	require.Equal(t, python{torch, true, []string{"/a", "/b"}}, p)
	require.Equal(t, torch+" with PyTorch", p.String())
	_, works = ask(broken)
	require.False(t, works)
	_, works = ask(dir + "/none")
	require.False(t, works)
	t.Setenv("VIRTUAL_ENV", dir+"/venv")
	t.Setenv("PATH", filepath.Dir(torch))
	require.Equal(t, torch, findPython().path)
	if found, _ := filepath.Glob("/opt/*"); len(found) > 0 {
		return // this machine may have another interpreter there
	}
	t.Setenv("PATH", filepath.Dir(plain))
	require.Equal(t, plain+" without PyTorch", findPython().String())
}

func TestLibrariesOfTheEnvironment(t *testing.T) {
	t.Setenv("RINGTRAIN_NCCL_LIB", "/given/libnccl.so.2")
	t.Setenv("LD_LIBRARY_PATH", "/before")
	env := librarySettings(0, python{})
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

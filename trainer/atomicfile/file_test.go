package atomicfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/trainer/atomicfile"
)

// names lists a directory.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.bin")
	require.NoError(t, os.WriteFile(path, []byte("old"), 0o644))
	told := 0
	f, err := atomicfile.Create(path, atomicfile.Options{Tag: "me-7", Progress: func(n int) { told += n }})
	require.NoError(t, err)
	_, err = f.Write([]byte("newer"))
	require.NoError(t, err)
	require.Len(t, names(t, dir), 2)
	tag, ok := atomicfile.Tag(names(t, dir)[0], ".bin")
	require.True(t, ok)
	require.Equal(t, "me-7", tag)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "old", string(text), "before Replace")
	require.NoError(t, f.Replace())
	require.NoError(t, f.Discard(), "after Replace it does nothing")
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "newer", string(text))
	require.Equal(t, []string{"a.bin"}, names(t, dir))
	require.Equal(t, 2*len("newer"), told, "written, and synced")
}

func TestDiscard(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a")
	f, err := atomicfile.Create(path, atomicfile.Options{})
	require.NoError(t, err)
	_, err = f.Write([]byte("x"))
	require.NoError(t, err)
	require.NoError(t, f.Discard())
	require.Empty(t, names(t, dir))
}

// A rename that fails leaves the old file and, after Discard, nothing else.
func TestReplaceFails(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "d")
	require.NoError(t, os.Mkdir(path, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(path, "x"), nil, 0o644)) // not even an empty directory
	err := atomicfile.WriteFile(path, []byte("x"), atomicfile.Options{NoSync: true})
	require.Error(t, err)
	require.NotContains(t, err.Error(), ".tmp", "the temporary name means nothing to a user")
	require.Equal(t, []string{"d"}, names(t, dir))
}

func TestCreateFails(t *testing.T) {
	_, err := atomicfile.Create(filepath.Join(t.TempDir(), "none", "a"), atomicfile.Options{})
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such modes")
	}
	path := filepath.Join(t.TempDir(), "a")
	require.NoError(t, atomicfile.WriteFile(path, nil, atomicfile.Options{}))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o644), info.Mode().Perm()|0o044, "others may read it, if the umask lets them")
}

func TestTag(t *testing.T) {
	for name, want := range map[string]string{
		".a.bin.me-7.00c0ffee.tmp": "me-7",
		".a.bin.00c0ffee.tmp":      "", // no tag
		".a.bin..00c0ffee.tmp":     "",
		".a.txt.me-7.00c0ffee.tmp": "", // another extension
		"a.bin.me-7.00c0ffee.tmp":  "", // not hidden
		".a.bin.me-7.00c0ffee":     "",
		".a.bin.me.7.00c0ffee.tmp": "", // a tag has no dot
		".bin.tmp":                 "",
		"":                         "",
	} {
		tag, ok := atomicfile.Tag(name, ".bin")
		require.Equal(t, want != "", ok, name)
		if ok {
			require.Equal(t, want, tag)
		}
	}
}

// Any name that is not one of ours is refused and nothing panics.
func FuzzTag(f *testing.F) {
	f.Add(".a.bin.me-7.00c0ffee.tmp", ".bin")
	f.Fuzz(func(t *testing.T, name, ext string) {
		if tag, ok := atomicfile.Tag(name, ext); ok && (tag == "" || strings.Contains(tag, ".") || !strings.Contains(name, tag)) {
			t.Error(errors.New(tag))
		}
	})
}

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Even if everything fails, the table has all verdicts, and lines of every failed step.
func TestTableIsBounded(t *testing.T) {
	found := &summary{settings: settings{limit: 540 * time.Second}, begun: time.Now()}
	for _, s := range first() {
		r := &result{Step: s.name, Verdict: failed}
		for i := range 100 {
			r.fail("%d %s", i, strings.Repeat("it is broken ", 50))
			r.skip(true, "%d %s", i, strings.Repeat("and skipped ", 30))
			r.figure("%d %s", i, strings.Repeat("1.5 us ", 40))
		}
		found.results = append(found.results, r)
	}
	table := found.table(tableLimit)
	require.LessOrEqual(t, len(table), tableLimit)
	for _, s := range first() {
		require.Contains(t, table, "| "+s.name+" | FAILED | 0 | 100 | 100 |")
		for _, heading := range []string{"## Failures", "## Skipped", "## Figures"} {
			_, section, found := strings.Cut(table, heading)
			require.True(t, found)
			require.Contains(t, section, "- "+s.name+": ", heading)
		}
	}
	require.Contains(t, table, "0 of 11 steps are ok.")
	require.Greater(t, len(found.table(1<<20)), 100_000, "report.md has all lines")
}

func TestAlike(t *testing.T) {
	require.Equal(t, []string{"TestA: no GPU (and 2 others)", "TestB: wrong", "no colon", "no colon", "TestC: right"},
		alike([]string{"TestA: no GPU", "TestB: wrong", "no colon", "TestD: no GPU", "no colon", "TestE: e_test.go:7: no GPU", "TestC: right"}))
}

func TestArchive(t *testing.T) {
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "logs.tar.gz")
	long := bytes.Repeat([]byte("x"), headBytes+2*tailBytes)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "nccl"), 0o755))
	for name, text := range map[string][]byte{"1.log": []byte("one"), "2.log": long, "nccl/3.log": []byte("three")} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	read := func() map[string]string {
		file, err := os.Open(path)
		require.NoError(t, err)
		defer file.Close()
		zip, err := gzip.NewReader(file)
		require.NoError(t, err)
		got := map[string]string{}
		for pack := tar.NewReader(zip); ; {
			header, err := pack.Next()
			if err == io.EOF {
				return got
			}
			require.NoError(t, err)
			text, err := io.ReadAll(pack)
			require.NoError(t, err)
			got[header.Name] = string(text)
		}
	}
	require.NoError(t, archive(dir, path, archiveLimit))
	got := read()
	require.Equal(t, "one", got["logs/1.log"])
	require.Equal(t, "three", got["logs/nccl/3.log"])
	require.Contains(t, got["logs/2.log"], "[1048576 bytes omitted]")
	require.NoError(t, archive(dir, path, 100))
	require.Equal(t, map[string]string{"logs/LEFT-OUT": "1.log\n2.log\nnccl/3.log\n"}, read())
	require.NoError(t, archive(filepath.Join(dir, "none"), path, archiveLimit), "an absent directory, if no command ran")
}

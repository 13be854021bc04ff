package main

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// writeText writes the first size bytes of the Go files below dir, ordered by the hash of
// their paths, without the end of a character that would be cut.
func writeText(dir string, size int, file string) error {
	var paths []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && strings.HasSuffix(path, ".go") {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(paths, func(a, b string) int {
		x, y := order(dir, a), order(dir, b)
		return cmp.Or(slices.Compare(x[:], y[:]), strings.Compare(a, b))
	})
	var text []byte
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !utf8.Valid(source) {
			continue
		}
		if text = append(text, source...); len(text) >= size {
			text = text[:size]
			for !utf8.Valid(text) {
				text = text[:len(text)-1]
			}
			return os.WriteFile(file, text, 0o600)
		}
	}
	return fmt.Errorf("the Go files below %s have only %d bytes, not %d", dir, len(text), size)
}

// order returns the hash of a path relative to dir.
func order(dir, path string) [sha256.Size]byte {
	rest := strings.TrimPrefix(path, dir)
	return sha256.Sum256([]byte(filepath.ToSlash(rest)))
}

//go:build !windows

package cli

import "github.com/google/renameio/v2"

// replaceFile puts a file at path whole or not at all.
func replaceFile(path string, text []byte) error { return renameio.WriteFile(path, text, 0o644) }

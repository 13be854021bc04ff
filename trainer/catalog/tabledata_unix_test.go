//go:build !windows

package catalog_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/ringtrain/ringtrain/trainer/catalog"
)

// The workers of a run could not read a pipe again, and waited for it forever.
func TestTablesInPipesAreRefused(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	_, err := catalog.New().Data("csv:"+pipe, catalog.Options{Target: "kind"})
	require.ErrorContains(t, err, pipe+" is not a file: every worker reads the table")
	_, err = catalog.New().Data("csv:"+shapes(t), catalog.Options{Target: "kind", Test: pipe})
	require.ErrorContains(t, err, "--test-data "+pipe+" is not a file: every worker reads the table")
}

package build

import (
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Read reports for this program what the go command was given.
func TestRead(t *testing.T) {
	b := Read()
	require.Equal(t, runtime.Version(), b.Go)
	require.Equal(t, runtime.GOOS+"/"+runtime.GOARCH, b.OS+"/"+b.Arch)
	if cgo, set := os.LookupEnv("CGO_ENABLED"); set {
		require.Equal(t, cgo == "1", b.Cgo, "go test builds with its own environment")
	}
	require.NotEmpty(t, b.Version)
	require.False(t, strings.ContainsAny(b.Version+b.Revision, " \n"), "it is one word of a line")
	require.Positive(t, b.Wire)
}

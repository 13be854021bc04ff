package cluster

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Builds of one release work together, and so do all builds without a release,
// whatever stamps the repository gave them.
func TestRelease(t *testing.T) {
	for version, want := range map[string]string{
		"v1.2.3": "v1.2.3", "v1.2.3-rc.1": "v1.2.3-rc.1", "": unreleased, unreleased: unreleased, "v1.2.3+dirty": unreleased,
		"v0.0.0-20250102030405-0123456789ab": unreleased, "v1.2.4-0.20250102030405-0123456789ab": unreleased,
		"v1.2.4-rc.1.0.20250102030405-0123456789ab+dirty": unreleased,
	} {
		require.Equal(t, want, release(version), version)
	}
	require.NotEmpty(t, moduleVersion())
}

package ringtrain

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// packageRow matches a row of the package table in docs/architecture.md.
var packageRow = regexp.MustCompile("(?m)^\\| `([a-z_/.]+)` \\|.*\\| (here|planned) \\|$")

// The map in docs/architecture.md is accurate: every existing package has a row with the
// status "here", every other row says "planned", and importTable has a row for each.
func TestMapIsAccurate(t *testing.T) {
	text, err := os.ReadFile("docs/architecture.md")
	require.NoError(t, err)
	whole, err := load(os.DirFS("."))
	require.NoError(t, err)
	exists := map[string]bool{}
	for _, f := range whole.files {
		exists[f.dir] = exists[f.dir] || !f.test
	}

	mapped := map[string]bool{}
	for _, match := range packageRow.FindAllStringSubmatch(string(text), -1) {
		dir, status := match[1], match[2]
		mapped[dir] = true
		if exists[dir] != (status == "here") {
			t.Errorf("docs/architecture.md: %s has the status %q, but exists: %v; change the status", dir, status, exists[dir])
		}
	}
	for dir, code := range exists {
		if code && !mapped[dir] {
			t.Errorf("docs/architecture.md: no row for %s, which exists; add one", dir)
		}
	}
	for _, r := range importRows() {
		if !mapped[r.pkg] && r.pkg != "examples/..." {
			t.Errorf("docs/architecture.md: no row for %s, which is in importTable; add one", r.pkg)
		}
		delete(mapped, r.pkg)
	}
	for dir := range mapped {
		if matches("examples/...", dir) {
			continue // one row of importTable is for all examples without their own
		}
		t.Errorf("docs/architecture.md: a row for %s, which is not in importTable; add it there or remove the row", dir)
	}
}

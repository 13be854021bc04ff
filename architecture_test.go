package ringtrain

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// packageTable matches the section of docs/architecture.md with the package table, and packageRow
// a row of it.
var (
	packageTable = regexp.MustCompile("(?s)\n## The packages\n.*?\n## ")
	packageRow   = regexp.MustCompile("(?m)^\\| `([a-z_/.]+)` \\|.*\\|$")
)

// The map in docs/architecture.md is accurate: every package has a row there and in importTable,
// and every row is that of a package.
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
	for _, match := range packageRow.FindAllStringSubmatch(packageTable.FindString(string(text)), -1) {
		dir := match[1]
		mapped[dir] = true
		if !exists[dir] {
			t.Errorf("docs/architecture.md: a row for %s, which does not exist; remove it", dir)
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

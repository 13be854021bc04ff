package ringtrain

import (
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// packageRow is a row of the package table in docs/architecture.md.
var packageRow = regexp.MustCompile("(?m)^\\| `([a-z/.]+)` \\|.*\\| (here|planned) \\|$")

// The map shows what is there: every package has a row with the status "here",
// every other row says "planned", and all have a row in importTable.
func TestMapIsTrue(t *testing.T) {
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
			t.Errorf("docs/architecture.md: %s is %q on the map; in the tree: %v. Change the status.", dir, status, exists[dir])
		}
	}
	for _, r := range importRows() {
		if !mapped[r.pkg] && r.pkg != "examples/..." {
			t.Errorf("docs/architecture.md: no row for %s, which has one in importTable", r.pkg)
		}
		delete(mapped, r.pkg)
	}
	for dir := range mapped {
		t.Errorf("docs/architecture.md: a row for %s, which has none in importTable", dir)
	}
}

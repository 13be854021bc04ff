package ringtrain

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// A rule is a statement about the tree, with a function that finds violations.
type rule struct {
	name  string
	says  string
	check func(*tree) []violation
}

var rules = []rule{
	{"imports", "a package imports only what its row in imports_test.go allows", checkImports},
	{"soleImporters", "a library that shapes a design is imported by only one package", checkSoleImporters},
	{"collectiveIsLight", "collective is light to import: it needs only the standard library and golang.org/x/sys", checkCollectiveIsLight},
	{"names", "a package is named after its concept", checkNames},
	{"fileSize", "a file holds one concept, in at most 500 lines", checkFileSize},
	{"functionSize", "a function is at most 80 lines long", checkFunctionSize},
	{"fields", "a struct has at most 20 fields", checkFields},
	{"methods", "a type has at most 30 methods", checkMethods},
	{"parameters", "a function has at most 5 parameters", checkParameters},
	{"packageDoc", "each package has exactly one package comment", checkPackageDoc},
	{"exportedDoc", "each exported name is documented", checkExportedDoc},
	{"noInit", "importing a package has no side effects", checkNoInit},
	{"noSleepInTests", "a test waits for events, not for time to pass", checkNoSleepInTests},
	{"noCudaTag", "the build tag of GPU code is gpu; the tag cuda belongs to gorgonia", checkNoCudaTag},
	{"panic", "only kernels panic, on what Init has ruled out", checkPanic},
	{"readme", "README.md is a short tour: at most 120 lines of at most 100 characters", checkReadme},
	{"portableMath", "a run has the same bits on every processor", checkPortableMath},
	{"exit", "only commands end the process", checkExit},
}

// The tree follows all rules.
func TestRules(t *testing.T) {
	whole, err := load(os.DirFS("."))
	require.NoError(t, err)
	require.NotEmpty(t, whole.files)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, b := range r.check(whole) {
				t.Errorf("%s: %s\n\trule: %s\n\tfix:  %s", b.where, b.what, r.says, b.fix)
			}
		})
	}
}

// Each rule finds its violations, and none in a tree that follows it.
func TestRulesFindViolations(t *testing.T) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			require.Empty(t, r.check(loadMap(t, nil)))
			require.NotEmpty(t, broken[r.name], "this rule has no example of a violation")
			for _, example := range broken[r.name] {
				found := r.check(loadMap(t, example.files))
				require.Len(t, found, 1, example.want)
				require.Contains(t, found[0].where+": "+found[0].what, example.want)
				require.NotEmpty(t, found[0].fix)
			}
		})
	}
}

// loadMap parses fine with some files added or replaced.
func loadMap(t *testing.T, files map[string]string) *tree {
	t.Helper()
	all := fstest.MapFS{}
	for _, m := range []map[string]string{fine, files} {
		for name, text := range m {
			all[name] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	parsed, err := load(all)
	require.NoError(t, err)
	return parsed
}

func TestLoadReportsSyntaxErrors(t *testing.T) {
	_, err := load(fstest.MapFS{"nn/x.go": {Data: []byte("func")}})
	require.ErrorContains(t, err, "nn/x.go:1")
}

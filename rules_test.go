package ringtrain

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// A rule is a sentence about the tree and the function that finds what breaks it.
type rule struct {
	name  string
	says  string
	check func(*tree) []breach
}

var rules = []rule{
	{"imports", "a package imports only what its row in imports_test.go allows", checkImports},
	{"soleImporters", "a library that shapes a design has one package that knows it", checkSoleImporters},
	{"collectiveIsLight", "collective can be used by anybody: it needs the standard library and golang.org/x/sys", checkCollectiveIsLight},
	{"names", "a package is named for its concept", checkNames},
	{"fileSize", "a file holds one concept, in at most 500 lines", checkFileSize},
	{"functionSize", "a function is at most 80 lines long", checkFunctionSize},
	{"packageDoc", "each package has exactly one package comment", checkPackageDoc},
	{"exportedDoc", "each exported name is documented", checkExportedDoc},
	{"noInit", "nothing happens because a package was imported", checkNoInit},
	{"noSleepInTests", "a test waits for events, not for time", checkNoSleepInTests},
	{"noCudaTag", "GPU code is built by the tag gpu; the tag cuda belongs to gorgonia", checkNoCudaTag},
	{"panic", "only kernels panic, for what Init has excluded", checkPanic},
	{"readme", "README.md is a short tour: at most 120 lines of at most 100 characters", checkReadme},
	{"exit", "only commands end the process", checkExit},
}

// The tree keeps all of its rules.
func TestRules(t *testing.T) {
	whole, err := load(os.DirFS("."))
	require.NoError(t, err)
	require.NotEmpty(t, whole.files)
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, b := range r.check(whole) {
				t.Errorf("%s: %s\n\trule:  %s\n\tto do: %s", b.where, b.what, r.says, b.todo)
			}
		})
	}
}

// Each rule finds what breaks it, and nothing in a tree that keeps it.
func TestRulesFindBreaches(t *testing.T) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			require.Empty(t, r.check(loadMap(t, nil)))
			require.NotEmpty(t, broken[r.name], "a rule that nothing is known to break")
			for _, example := range broken[r.name] {
				found := r.check(loadMap(t, example.files))
				require.Len(t, found, 1, example.want)
				require.Contains(t, found[0].where+": "+found[0].what, example.want)
				require.NotEmpty(t, found[0].todo)
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

func TestLoadRefusesWhatIsNotGo(t *testing.T) {
	_, err := load(fstest.MapFS{"nn/x.go": {Data: []byte("func")}})
	require.ErrorContains(t, err, "nn/x.go:1")
}

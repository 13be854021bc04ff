package ringtrain

import (
	"slices"
	"strings"
)

// soleImporters maps a library to the only package that may import it, besides examples,
// which are programs of users.
var soleImporters = map[string]string{
	"github.com/hashicorp/memberlist": "collective/membership",
	"gorgonia.org/cu":                 "cuda",
	"gorgonia.org/gorgonia":           "nn/graph",
	"go.etcd.io/bbolt":                "trainer/store",
}

func checkSoleImporters(t *tree) []violation {
	var found []violation
	for _, f := range t.files {
		for _, spec := range f.Imports {
			for library, owner := range soleImporters {
				if under(importPath(spec), library) && f.dir != owner && !under(f.dir, "examples") {
					found = append(found, t.violation(spec.Pos(), "use "+owner+" instead, and extend it if something is missing", "%s imports %s", f.dir, importPath(spec)))
				}
			}
		}
	}
	return found
}

// checkCollectiveIsLight checks what users link, so it skips tests and their kit.
func checkCollectiveIsLight(t *tree) []violation {
	var found []violation
	for _, f := range t.files {
		if f.test || !under(f.dir, "collective") || slices.Contains([]string{"collective/membership", "collective/collectivetest"}, f.dir) {
			continue
		}
		for _, spec := range f.Imports {
			imported := importPath(spec)
			if _, ours := ourDir(imported); ours || standard(imported) || under(imported, "golang.org/x/sys") {
				continue
			}
			found = append(found, t.violation(spec.Pos(), "use the standard library, or do this in a package outside collective", "%s imports %s", f.dir, imported))
		}
	}
	return found
}

// standard reports whether the path belongs to the standard library: its first element is
// not a host name.
func standard(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

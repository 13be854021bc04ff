package ringtrain

import (
	"go/build/constraint"
	"slices"
	"strconv"
	"strings"
)

// emptyNames say nothing about the contents of a package.
var emptyNames = []string{"utils", "util", "common", "types", "pkg", "internal", "helpers", "helper", "misc", "base", "shared", "lib", "core"}

func checkNames(t *tree) []violation {
	var found []violation
	seen := map[string]bool{}
	for _, f := range t.files {
		elements := append(strings.Split(f.dir, "/"), strings.TrimSuffix(f.Name.Name, "_test"))
		for _, name := range elements {
			if slices.Contains(emptyNames, name) && !seen[f.dir] {
				seen[f.dir] = true
				found = append(found, t.violation(f.Package, "name the concept, or move the code to its caller", "%s says nothing about its contents", name))
			}
		}
	}
	return found
}

func checkNoCudaTag(t *tree) []violation {
	const fix = "use the tag gpu"
	var found []violation
	for _, f := range t.files {
		for _, group := range f.Comments {
			for _, c := range group.List {
				if c.Pos() < f.Package && mentionsTag(c.Text, "cuda") {
					found = append(found, t.violation(c.Pos(), fix, "build tag cuda"))
				}
			}
		}
	}
	for _, f := range t.foreign {
		number := 0
		for line := range strings.Lines(string(f.text)) {
			number++
			if mentionsTag(strings.TrimSpace(line), "cuda") {
				found = append(found, violation{f.path + ":" + strconv.Itoa(number), "build tag cuda", fix})
			}
		}
	}
	return found
}

// mentionsTag reports whether the line is a build constraint that contains the tag.
func mentionsTag(line, tag string) bool {
	if !constraint.IsGoBuild(line) && !constraint.IsPlusBuild(line) {
		return false
	}
	expr, err := constraint.Parse(line)
	if err != nil {
		return false // the go command reports this
	}
	mentioned := false
	collect(expr, func(t string) { mentioned = mentioned || t == tag })
	return mentioned
}

// collect calls f for every tag of the expression. (Eval would stop early.)
func collect(expr constraint.Expr, f func(tag string)) {
	switch e := expr.(type) {
	case *constraint.TagExpr:
		f(e.Tag)
	case *constraint.NotExpr:
		collect(e.X, f)
	case *constraint.AndExpr:
		collect(e.X, f)
		collect(e.Y, f)
	case *constraint.OrExpr:
		collect(e.X, f)
		collect(e.Y, f)
	}
}

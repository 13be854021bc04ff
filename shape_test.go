package ringtrain

import (
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	maxFields     = 20
	maxMethods    = 30
	maxParameters = 5
)

// shaped lists the packages to which the limits in this file apply, together with all
// packages below them. Add a package once it is within the limits.
var shaped = []string{"collective", "nn/models", "nn/text", "trainer/checkpoint", "trainer/config", "trainer/job", "trainer/launch", "trainer/trace"}

// oversize lists declarations that exceeded a limit when the limits were introduced, with
// their counts. Counts may only decrease. If a declaration shrinks, lower its count; once
// it is within the limit, remove the entry.
var oversize = map[string]int{
	"fields of collective/cluster Config": 23,
}

// A shape is the number of fields, methods or parameters of a declaration.
type shape struct {
	of    string // "fields of collective Group"
	at    token.Pos
	count int
}

func checkFields(t *tree) []violation {
	return t.beyond(t.fields(), maxFields, "move fields that change together into a separate type")
}

func checkMethods(t *tree) []violation {
	return t.beyond(t.methods(), maxMethods, "move methods that share a few fields into a separate type, with those fields")
}

func checkParameters(t *tree) []violation {
	return t.beyond(t.parameters(), maxParameters, "combine parameters that belong together into a type")
}

// fields returns the shapes of structs. An embedded struct counts as one field.
func (t *tree) fields() (all []shape) {
	t.shapes(func(f *file, n ast.Node) {
		if spec, ok := n.(*ast.TypeSpec); ok {
			if s, ok := spec.Type.(*ast.StructType); ok {
				all = append(all, shape{"fields of " + f.dir + " " + spec.Name.Name, spec.Pos(), length(s.Fields)})
			}
		}
	})
	return all
}

// methods returns the shapes of types, at their first method. A method with one version
// per system counts once.
func (t *tree) methods() (all []shape) {
	seen := map[string]bool{}
	t.shapes(func(f *file, n ast.Node) {
		fn, ok := n.(*ast.FuncDecl)
		if !ok || fn.Recv == nil {
			return
		}
		of := "methods of " + f.dir + " " + receiver(fn)
		if seen[of+"."+fn.Name.Name] {
			return
		}
		seen[of+"."+fn.Name.Name] = true
		if i := slices.IndexFunc(all, func(s shape) bool { return s.of == of }); i >= 0 {
			all[i].count++
		} else {
			all = append(all, shape{of, fn.Pos(), 1})
		}
	})
	return all
}

// parameters returns the shapes of functions.
func (t *tree) parameters() (all []shape) {
	t.shapes(func(f *file, n ast.Node) {
		switch n := n.(type) {
		case *ast.FuncDecl:
			all = append(all, shape{"parameters of " + f.dir + " " + n.Name.Name, n.Pos(), length(n.Type.Params)})
		case *ast.FuncLit:
			all = append(all, shape{"parameters of a function literal in " + f.dir, n.Pos(), length(n.Type.Params)})
		}
	})
	return all
}

// shapes calls look for every node in the packages to which the limits apply.
func (t *tree) shapes(look func(*file, ast.Node)) {
	for _, f := range t.files {
		if f.test || !under(f.dir, shaped...) {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			look(f, n)
			return true
		})
	}
}

// beyond returns shapes that exceed a limit, and entries of oversize that are higher
// than necessary.
func (t *tree) beyond(all []shape, limit int, fix string) []violation {
	var found []violation
	for _, s := range all {
		listed, known := oversize[s.of]
		switch {
		case known && s.count < listed:
			found = append(found, t.violation(s.at, "lower the entry, or remove it if the count is within the limit", "%s: there are %d, but oversize lists %d", s.of, s.count, listed))
		case s.count > max(limit, listed):
			found = append(found, t.violation(s.at, fix, "%s: there are %d, more than %d", s.of, s.count, max(limit, listed)))
		}
	}
	return found
}

func length(l *ast.FieldList) int {
	n := 0
	for _, f := range l.List {
		n += max(1, len(f.Names))
	}
	return n
}

// receiver returns the name of a method's type.
func receiver(fn *ast.FuncDecl) string {
	name := ""
	ast.Inspect(fn.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

// Every entry of oversize refers to an existing declaration.
func TestOversizeExists(t *testing.T) {
	whole, err := load(os.DirFS("."))
	require.NoError(t, err)
	var names []string
	for _, s := range slices.Concat(whole.fields(), whole.methods(), whole.parameters()) {
		names = append(names, s.of)
	}
	for of := range oversize {
		require.Contains(t, names, of, "remove the entry")
	}
}

// many returns n fields or parameters.
func many(n int, each string) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(each, i))
	}
	return strings.Join(list, "")
}

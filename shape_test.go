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

// exempt lists what may exceed a limit for good, with the reason. An entry without a name
// covers the whole package.
var exempt = map[string]string{
	"fields of collective/cluster Config": "settings, like a flag set: callers set a few of them, by name",
	"fields of nn/gpu Backend":            "implements nn.Backend: all state of one device",
	"methods of nn/cpu Backend":           "implements nn.Backend, with one method per kernel",
	"methods of nn/gpu Backend":           "implements nn.Backend, with one method per kernel",
	"parameters of nccl":                  "bindings: the parameters are those of NCCL's functions",
	"parameters of nn/cpu":                "kernels: the parameters are those of nn.Backend and BLAS",
	"parameters of nn/gpu":                "kernels: the parameters are those of nn.Backend and BLAS",
}

// oversize lists declarations that are still to be split, with their counts. Counts may
// only decrease. If a declaration shrinks, lower its count; once it is within the limit,
// remove the entry.
var oversize = map[string]int{}

// A shape is the number of fields, methods or parameters of a declaration.
type shape struct {
	of    string // "fields of collective Group"
	group string // "fields of collective", the same for a whole package
	at    token.Pos
	count int
}

func newShape(what string, f *file, name string, at token.Pos, count int) shape {
	group := what + " of " + f.dir
	return shape{group + " " + name, group, at, count}
}

func checkFields(t *tree) []violation {
	return t.beyond(t.fields(), oversize, maxFields, "move fields that change together into a separate type")
}

func checkMethods(t *tree) []violation {
	return t.beyond(t.methods(), oversize, maxMethods, "move methods that share a few fields into a separate type, with those fields")
}

func checkParameters(t *tree) []violation {
	return t.beyond(t.parameters(), oversize, maxParameters, "combine parameters that belong together into a type")
}

// fields returns the shapes of structs. An embedded struct counts as one field.
func (t *tree) fields() (all []shape) {
	t.shapes(func(f *file, n ast.Node) {
		if spec, ok := n.(*ast.TypeSpec); ok {
			if s, ok := spec.Type.(*ast.StructType); ok {
				all = append(all, newShape("fields", f, spec.Name.Name, spec.Pos(), length(s.Fields)))
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
			all = append(all, newShape("methods", f, receiver(fn), fn.Pos(), 1))
		}
	})
	return all
}

// parameters returns the shapes of functions.
func (t *tree) parameters() (all []shape) {
	t.shapes(func(f *file, n ast.Node) {
		switch n := n.(type) {
		case *ast.FuncDecl:
			all = append(all, newShape("parameters", f, n.Name.Name, n.Pos(), length(n.Type.Params)))
		case *ast.FuncLit:
			all = append(all, newShape("parameters", f, "(a function literal)", n.Pos(), length(n.Type.Params)))
		}
	})
	return all
}

// shapes calls look for every node outside tests.
func (t *tree) shapes(look func(*file, ast.Node)) {
	for _, f := range t.files {
		if f.test {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			look(f, n)
			return true
		})
	}
}

// beyond returns shapes that exceed both the limit and their listed count, and counts
// that are higher than necessary.
func (t *tree) beyond(all []shape, counts map[string]int, limit int, fix string) []violation {
	var found []violation
	for _, s := range all {
		listed, known := counts[s.of]
		switch {
		case s.exempt():
		case known && s.count < listed:
			found = append(found, t.violation(s.at, "lower the entry, or remove it if the count is within the limit", "%s: there are %d, but oversize lists %d", s.of, s.count, listed))
		case s.count > max(limit, listed):
			found = append(found, t.violation(s.at, fix, "%s: there are %d, more than %d", s.of, s.count, max(limit, listed)))
		}
	}
	return found
}

func (s shape) exempt() bool { return exempt[s.of] != "" || exempt[s.group] != "" }

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

// Every exception covers a declaration that exceeds the limit.
func TestExceptionsAreNeeded(t *testing.T) {
	whole, err := load(os.DirFS("."))
	require.NoError(t, err)
	needed := map[string]bool{}
	for _, beyond := range []struct {
		limit  int
		shapes []shape
	}{{maxFields, whole.fields()}, {maxMethods, whole.methods()}, {maxParameters, whole.parameters()}} {
		for _, s := range beyond.shapes {
			if s.count > beyond.limit {
				needed[s.of], needed[s.group] = true, true
			}
		}
	}
	for of, why := range exempt {
		require.True(t, needed[of], "%s: nothing exceeds the limit; remove the entry", of)
		require.NotEmpty(t, why, of)
	}
	for of := range oversize {
		require.True(t, needed[of], "%s: nothing exceeds the limit; remove the entry", of)
	}
}

// Listed counts may only decrease.
func TestCountsOnlyDecrease(t *testing.T) {
	three := loadMap(t, map[string]string{"collective/x.go": "package collective\ntype x struct{ a, b, c int }\n"})
	const of = "fields of collective x"
	for listed, want := range map[int]string{2: "there are 3, more than 2", 3: "", 4: "there are 3, but oversize lists 4"} {
		var found string
		for _, v := range three.beyond(three.fields(), map[string]int{of: listed}, 1, "") {
			if strings.HasPrefix(v.what, of+": ") {
				found += v.what
			}
		}
		require.Equal(t, want, strings.TrimPrefix(found, of+": "))
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

package ringtrain

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// module is the import path of this directory.
const module = "github.com/ringtrain/ringtrain"

// A tree is what the rules look at: every Go file below a directory, parsed; C
// and assembly files; and README.md. It leaves out directories that the go
// command ignores, and tools, which is a module of its own.
type tree struct {
	fset    *token.FileSet
	files   []*file
	foreign []foreign
	readme  string // README.md, "" if there is none
}

// A file is one Go file.
type file struct {
	path  string // from the root of the tree, with slashes
	dir   string // its directory; "." for the root
	test  bool
	lines int
	*ast.File
	imports map[string]string // name in this file -> import path
}

// A foreign file is C or assembly.
type foreign struct {
	path string
	text []byte
}

var foreignExtensions = []string{".c", ".cc", ".cpp", ".h", ".s", ".S"}

// load reads and parses the tree in fsys.
func load(fsys fs.FS) (*tree, error) {
	t := &tree{fset: token.NewFileSet()}
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if p != "." && skipped(p, d.Name()) {
				return fs.SkipDir
			}
			return nil
		case p == "README.md":
			text, err := fs.ReadFile(fsys, p)
			t.readme = string(text)
			return err
		case path.Ext(p) == ".go" || slices.Contains(foreignExtensions, path.Ext(p)):
			return t.add(fsys, p)
		}
		return nil
	})
	return t, err
}

func skipped(p, name string) bool {
	return name == "testdata" || name == "vendor" || p == "tools" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
}

func (t *tree) add(fsys fs.FS, p string) error {
	text, err := fs.ReadFile(fsys, p)
	if err != nil {
		return err
	}
	if path.Ext(p) != ".go" {
		t.foreign = append(t.foreign, foreign{p, text})
		return nil
	}
	syntax, err := parser.ParseFile(t.fset, p, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	f := &file{
		path:    p,
		dir:     path.Dir(p),
		test:    strings.HasSuffix(p, "_test.go"),
		lines:   bytes.Count(text, []byte{'\n'}),
		File:    syntax,
		imports: map[string]string{},
	}
	for _, spec := range syntax.Imports {
		f.imports[importName(spec)] = importPath(spec)
	}
	t.files = append(t.files, f)
	return nil
}

// importName is what the file calls the import; without types it goes by the
// last element of the path, which is right for the standard library.
func importName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	return path.Base(importPath(spec))
}

func importPath(spec *ast.ImportSpec) string { return strings.Trim(spec.Path.Value, "`\"") }

// callee splits a call of a package's function into import path and name; both
// are empty for any other call.
func (f *file) callee(call *ast.CallExpr) (from, name string) {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	pkg, ok := selector.X.(*ast.Ident)
	if !ok || f.imports[pkg.Name] == "" {
		return "", ""
	}
	return f.imports[pkg.Name], selector.Sel.Name
}

// A breach is one place where a rule is broken.
type breach struct {
	where string // file:line
	what  string
	todo  string // what the author should do
}

func (t *tree) breach(at token.Pos, todo, format string, args ...any) breach {
	p := t.fset.Position(at)
	return breachAt(p.Filename, p.Line, todo, format, args...)
}

func breachAt(file string, line int, todo, format string, args ...any) breach {
	return breach{where: fmt.Sprintf("%s:%d", file, line), what: fmt.Sprintf(format, args...), todo: todo}
}

// under reports whether dir is one of the roots or below one.
func under(dir string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return dir == root || strings.HasPrefix(dir, root+"/")
	})
}

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

// A tree is what the rules check: every Go file below a directory, parsed; C and assembly
// files; and README.md. It leaves out directories that the go command ignores, and tools,
// which is a separate module.
type tree struct {
	fset    *token.FileSet
	files   []*file
	foreign []foreign
	readme  string // README.md, "" if there is none
}

// A file is one Go file.
type file struct {
	path  string // relative to the root of the tree, with slashes
	dir   string // its directory; "." for the root
	test  bool
	lines int
	*ast.File
	imports map[string]string // name in this file -> import path
}

// A foreign file contains C or assembly.
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

// importName returns the name of the import in the file. Without type information it uses
// the last element of the path, which is right for the standard library.
func importName(spec *ast.ImportSpec) string {
	if spec.Name != nil {
		return spec.Name.Name
	}
	return path.Base(importPath(spec))
}

func importPath(spec *ast.ImportSpec) string { return strings.Trim(spec.Path.Value, "`\"") }

// callee returns the import path and name of a called package function, or empty strings
// for any other call.
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

// A violation is one place where a rule is broken.
type violation struct {
	where string // file:line
	what  string
	fix   string // how to fix it
}

func (t *tree) violation(at token.Pos, fix, format string, args ...any) violation {
	p := t.fset.Position(at)
	return violationAt(p.Filename, p.Line, fix, format, args...)
}

func violationAt(file string, line int, fix, format string, args ...any) violation {
	return violation{where: fmt.Sprintf("%s:%d", file, line), what: fmt.Sprintf(format, args...), fix: fix}
}

// under reports whether dir is one of the roots or below one.
func under(dir string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return dir == root || strings.HasPrefix(dir, root+"/")
	})
}

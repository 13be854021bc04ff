package ringtrain

import (
	"go/ast"
	"go/token"
	"strings"
)

func checkPackageDoc(t *tree) []violation {
	type key struct{ dir, name string }
	var order []key
	files := map[key][]*file{}
	for _, f := range t.files {
		if f.test {
			continue
		}
		k := key{f.dir, f.Name.Name}
		if files[k] == nil {
			order = append(order, k)
		}
		files[k] = append(files[k], f)
	}
	var found []violation
	for _, k := range order {
		last, count := files[k][0], 0
		for _, f := range files[k] {
			if f.Doc.Text() != "" {
				last, count = f, count+1
			}
		}
		if count != 1 {
			found = append(found, t.violation(last.Package, "write exactly one, which says what the package is for; doc.go is a good place", "package %s has %d package comments", k.name, count))
		}
	}
	return found
}

func checkExportedDoc(t *tree) []violation {
	var found []violation
	bare := func(name *ast.Ident, full string) {
		found = append(found, t.violation(name.Pos(), "describe it: shapes, units, errors, ownership, or the paper or library that it follows", "%s has no comment", full))
	}
	for _, f := range t.files {
		if f.test {
			continue
		}
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if full, exported := fullName(d); exported && d.Doc.Text() == "" {
					bare(d.Name, full)
				}
			case *ast.GenDecl:
				for _, name := range undocumented(d) {
					bare(name, name.Name)
				}
			}
		}
	}
	return found
}

// fullName returns Func or Type.Method, and whether users of the package can see it.
func fullName(d *ast.FuncDecl) (full string, exported bool) {
	if d.Recv == nil {
		return d.Name.Name, d.Name.IsExported()
	}
	receiver := d.Recv.List[0].Type
	for {
		switch r := receiver.(type) {
		case *ast.StarExpr:
			receiver = r.X
		case *ast.ParenExpr:
			receiver = r.X
		case *ast.IndexExpr:
			receiver = r.X
		case *ast.IndexListExpr:
			receiver = r.X
		case *ast.Ident:
			return r.Name + "." + d.Name.Name, r.IsExported() && d.Name.IsExported()
		default:
			return d.Name.Name, false
		}
	}
}

// undocumented returns the exported names of a declaration that lack a comment. One
// comment is enough for a whole group of constants or variables, but each type in a group
// needs its own.
func undocumented(d *ast.GenDecl) []*ast.Ident {
	group := d.Doc.Text() != "" && (d.Tok != token.TYPE || !d.Lparen.IsValid())
	var names []*ast.Ident
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if !group && s.Name.IsExported() && commentText(s.Doc, s.Comment) == "" {
				names = append(names, s.Name)
			}
		case *ast.ValueSpec:
			for _, name := range s.Names {
				if !group && name.IsExported() && commentText(s.Doc, s.Comment) == "" {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

func commentText(comments ...*ast.CommentGroup) string {
	var all strings.Builder
	for _, c := range comments {
		all.WriteString(c.Text())
	}
	return all.String()
}

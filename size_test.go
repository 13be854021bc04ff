package ringtrain

import (
	"go/ast"
	"go/token"
)

const (
	maxFileLines     = 500
	maxFunctionLines = 80
)

func checkFileSize(t *tree) []violation {
	var found []violation
	for _, f := range t.files {
		if f.lines > maxFileLines && !f.test && !ast.IsGenerated(f.File) {
			found = append(found, t.violation(f.FileStart, "split it into files with one concept each", "%d lines, more than %d", f.lines, maxFileLines))
		}
	}
	return found
}

func checkFunctionSize(t *tree) []violation {
	var found []violation
	judge := func(n ast.Node, name string) {
		lines := t.line(n.End()) - t.line(n.Pos()) + 1
		if lines > maxFunctionLines {
			found = append(found, t.violation(n.Pos(), "move a part of it into a named function", "%s has %d lines, more than %d", name, lines, maxFunctionLines))
		}
	}
	for _, f := range t.files {
		if f.test || ast.IsGenerated(f.File) {
			continue
		}
		ast.Inspect(f.File, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				judge(n, n.Name.Name) // from "func" on, excluding the comment
				return false          // literals inside are shorter than the whole
			case *ast.FuncLit:
				judge(n, "a function literal")
				return false
			}
			return true
		})
	}
	return found
}

func (t *tree) line(at token.Pos) int { return t.fset.Position(at).Line }

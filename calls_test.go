package ringtrain

import (
	"go/ast"
	"strings"
)

func checkNoInit(t *tree) []violation {
	var found []violation
	for _, f := range t.files {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil && d.Name.Name == "init" {
				found = append(found, t.violation(d.Name.Pos(), "make it a function with a caller; trainer/catalog turns names into implementations", "func init"))
			}
		}
	}
	return found
}

func checkNoSleepInTests(t *tree) []violation {
	return t.calls(func(f *file, call *ast.CallExpr) (what, fix string) {
		if from, name := f.callee(call); f.test && from == "time" && name == "Sleep" {
			return "time.Sleep", "wait on a channel with a deadline, or use testing/synctest"
		}
		return "", ""
	})
}

func checkPanic(t *tree) []violation {
	return t.calls(func(f *file, call *ast.CallExpr) (what, fix string) {
		name, ok := call.Fun.(*ast.Ident)
		if ok && name.Name == "panic" && !f.test && !under(f.dir, "nn", "cuda") {
			return "panic", "return an error that says what failed, where, for whom, and what to do next"
		}
		return "", ""
	})
}

// endings lists prefixes of functions that end the process.
var endings = map[string][]string{
	"os":      {"Exit"},
	"syscall": {"Exit"},
	"log":     {"Fatal", "Panic"},
}

func checkExit(t *tree) []violation {
	return t.calls(func(f *file, call *ast.CallExpr) (what, fix string) {
		if f.test || under(f.dir, "cmd", "examples", "scripts") {
			return "", ""
		}
		from, name := f.callee(call)
		for _, ending := range endings[from] {
			if strings.HasPrefix(name, ending) {
				return from + "." + name, "return an error; cmd turns it into an exit code"
			}
		}
		return "", ""
	})
}

// calls returns the calls that judge objects to.
func (t *tree) calls(judge func(*file, *ast.CallExpr) (what, fix string)) []violation {
	var found []violation
	for _, f := range t.files {
		ast.Inspect(f.File, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if what, fix := judge(f, call); what != "" {
					found = append(found, t.violation(call.Pos(), fix, "%s", what))
				}
			}
			return true
		})
	}
	return found
}

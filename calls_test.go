package ringtrain

import (
	"go/ast"
	"strings"
)

func checkNoInit(t *tree) []breach {
	var found []breach
	for _, f := range t.files {
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Recv == nil && d.Name.Name == "init" {
				found = append(found, t.breach(d.Name.Pos(), "make it a function that somebody calls; trainer/catalog is where names become implementations", "func init"))
			}
		}
	}
	return found
}

func checkNoSleepInTests(t *tree) []breach {
	return t.calls(func(f *file, call *ast.CallExpr) (what, todo string) {
		if from, name := f.callee(call); f.test && from == "time" && name == "Sleep" {
			return "time.Sleep", "wait on a channel with a deadline, or take the time from testing/synctest"
		}
		return "", ""
	})
}

func checkPanic(t *tree) []breach {
	return t.calls(func(f *file, call *ast.CallExpr) (what, todo string) {
		name, ok := call.Fun.(*ast.Ident)
		if ok && name.Name == "panic" && !f.test && !under(f.dir, "nn", "cuda") {
			return "panic", "return an error that says what, where, who, and what to do next"
		}
		return "", ""
	})
}

// endings are the functions that end the process, or are meant to.
var endings = map[string][]string{
	"os":      {"Exit"},
	"syscall": {"Exit"},
	"log":     {"Fatal", "Panic"},
}

func checkExit(t *tree) []breach {
	return t.calls(func(f *file, call *ast.CallExpr) (what, todo string) {
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

// calls collects the calls that judge has something to say about.
func (t *tree) calls(judge func(*file, *ast.CallExpr) (what, todo string)) []breach {
	var found []breach
	for _, f := range t.files {
		ast.Inspect(f.File, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if what, todo := judge(f, call); what != "" {
					found = append(found, t.breach(call.Pos(), todo, "%s", what))
				}
			}
			return true
		})
	}
	return found
}

package ringtrain

import (
	"go/ast"
	"slices"
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

// portable lists functions whose bits are the same on every processor: they are exact, or
// correctly rounded. checkPortableMath refuses other functions of package math.
var portable = strings.Fields(`Abs Ceil Copysign Float32bits Float32frombits Float64bits Float64frombits Floor FMA Frexp Inf IsInf IsNaN
	Ldexp Max Min Mod Modf NaN Nextafter Nextafter32 Round RoundToEven Signbit Sqrt Trunc`)

func checkPortableMath(t *tree) []violation {
	return t.calls(func(f *file, call *ast.CallExpr) (what, fix string) {
		if f.test || !under(f.dir, "nn", "trainer", "collective/fold", "collective/schedule", "examples") || under(f.dir, "nn/nntest", "nn/graph") {
			return "", ""
		}
		if from, name := f.callee(call); from == "math" && !slices.Contains(portable, name) {
			return "math." + name, "use nn/portable, whose bits are the same on every processor"
		}
		if m, ok := call.Fun.(*ast.SelectorExpr); ok && (m.Sel.Name == "NormFloat64" || m.Sel.Name == "ExpFloat64") {
			return m.Sel.Name, "use nn/portable.Normal, whose bits are the same on every processor"
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

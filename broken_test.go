package ringtrain

import "strings"

// broken has trees that violate one rule each, and the expected violation, by the rule's
// name. files are added to those of fine.
var broken = map[string][]struct {
	files map[string]string
	want  string // part of "where: what"
}{
	"imports": {
		{files: map[string]string{"nn/relu.go": "package nn\nimport _ \"" + module + "/collective\"\n"},
			want: "nn/relu.go:2: nn may not import collective"},
		{files: map[string]string{"collective/x.go": "package collective\nimport \"" + module + "/nn/cpu\"\nvar _ = cpu.X\n"},
			want: "collective/x.go:2: collective may not import nn/cpu"},
		{files: map[string]string{"nn/gpu/x_gpu.go": "//go:build gpu\n\npackage gpu\nimport _ \"" + module + "/trainer\"\n"},
			want: "nn/gpu/x_gpu.go:4: nn/gpu may not import trainer"},
		{files: map[string]string{"elsewhere/x.go": "package elsewhere\n"},
			want: "elsewhere/x.go:1: package elsewhere has no row"},
		{files: map[string]string{"nn/x_test.go": "package nn\nimport _ \"" + module + "/trainer\"\n"},
			want: "nn/x_test.go:2: a test of nn may not import trainer"},
		{files: map[string]string{"trainer/x_test.go": "package trainer_test\nimport _ \"" + module + "/trainer/cli\"\n"},
			want: "trainer/x_test.go:2: a test of trainer may not import trainer/cli"},
		{files: map[string]string{"trainer/catalog/x.go": "package catalog\nimport _ \"" + module + "/trainer/cli\"\n"},
			want: "trainer/catalog/x.go:2: trainer/catalog may not import trainer/cli"},
		{files: map[string]string{"trainer/cli/x.go": "package cli\nimport _ \"" + module + "/nn/nntest\"\n"},
			want: "trainer/cli/x.go:2: trainer/cli may not import nn/nntest"},
	},
	"soleImporters": {
		{files: map[string]string{"collective/cluster/x_test.go": "package cluster\nimport _ \"github.com/hashicorp/memberlist\"\n"},
			want: "collective/cluster/x_test.go:2: collective/cluster imports github.com/hashicorp/memberlist"},
		{files: map[string]string{"nn/gpu/x.go": "package gpu\nimport _ \"gorgonia.org/cu/nvrtc\"\n"},
			want: "nn/gpu/x.go:2: nn/gpu imports gorgonia.org/cu/nvrtc"},
		{files: map[string]string{"nn/models/x.go": "package models\nimport _ \"gorgonia.org/gorgonia\"\n"},
			want: "nn/models/x.go:2: nn/models imports gorgonia.org/gorgonia"},
	},
	"collectiveIsLight": {
		{files: map[string]string{"collective/tcp/x.go": "package tcp\nimport _ \"golang.org/x/sync/errgroup\"\n"},
			want: "collective/tcp/x.go:2: collective/tcp imports golang.org/x/sync/errgroup"},
		{files: map[string]string{"collective/x_gpu.go": "//go:build gpu\n\npackage collective\nimport _ \"gonum.org/v1/gonum/mat\"\n"},
			want: "collective/x_gpu.go:4: collective imports gonum.org/v1/gonum/mat"},
	},
	"names": {
		{files: map[string]string{"nn/utils/x.go": "package utils\n"}, want: "nn/utils/x.go:1: utils says nothing"},
		{files: map[string]string{"internal/ring/x.go": "package ring\n"}, want: "internal/ring/x.go:1: internal says nothing"},
		{files: map[string]string{"nn/x.go": "package common\n"}, want: "nn/x.go:1: common says nothing"},
	},
	"fileSize": {
		{files: map[string]string{"nn/x.go": "package nn\n" + strings.Repeat("//\n", 500)}, want: "nn/x.go:1: 501 lines"},
	},
	"functionSize": {
		{files: map[string]string{"nn/x.go": "package nn\nfunc f() {\n" + strings.Repeat("//\n", 79) + "}\n"}, want: "nn/x.go:2: f has 81 lines"},
		{files: map[string]string{"nn/x.go": "package nn\nvar f = func() {\n" + strings.Repeat("//\n", 79) + "}\n"}, want: "nn/x.go:2: a function literal has 81 lines"},
	},
	"fields": {
		{files: map[string]string{"collective/x.go": "package collective\ntype x struct {\n" + many(20, "\tf%d int\n") + "\ty\n}\ntype y struct{}\n"},
			want: "collective/x.go:2: fields of collective x: there are 21, more than 20"},
	},
	"methods": {
		{files: map[string]string{"collective/x.go": "package collective\ntype x[T any] struct{}\n" + many(31, "func (*x[T]) f%d() {}\n")},
			want: "collective/x.go:3: methods of collective x: there are 31, more than 30"},
	},
	"parameters": {
		{files: map[string]string{"collective/x.go": "package collective\nfunc f(a, b int, c string, d, e, f bool) {}\n"},
			want: "collective/x.go:2: parameters of collective f: there are 6, more than 5"},
		{files: map[string]string{"nn/models/x.go": "// Package models is here.\npackage models\nvar f = func(a, b, c, d, e, f int) {}\n"},
			want: "nn/models/x.go:3: parameters of nn/models (a function literal): there are 6, more than 5"},
	},
	"packageDoc": {
		{files: map[string]string{"nn/models/x.go": "package models\n"}, want: "nn/models/x.go:1: package models has 0 package comments"},
		{files: map[string]string{"nn/x.go": "// Package nn is here too.\npackage nn\n"}, want: "nn/x.go:2: package nn has 2 package comments"},
		{files: map[string]string{"cmd/x/main.go": "//go:build linux\n\npackage main\n"}, want: "cmd/x/main.go:3: package main has 0 package comments"},
	},
	"exportedDoc": {
		{files: map[string]string{"nn/x.go": "package nn\nfunc Run() {}\n"}, want: "nn/x.go:2: Run has no comment"},
		{files: map[string]string{"nn/x.go": "package nn\n//go:noinline\nfunc Run() {}\n"}, want: "nn/x.go:3: Run has no comment"},
		{files: map[string]string{"nn/x.go": "package nn\n// T is.\ntype T[E any] struct{}\nfunc (t *T[E]) Len() int { return 0 }\n"}, want: "nn/x.go:4: T.Len has no comment"},
		{files: map[string]string{"nn/x.go": "package nn\n// Group.\ntype (\n\tA int\n)\n"}, want: "nn/x.go:4: A has no comment"},
		{files: map[string]string{"nn/x.go": "package nn\nconst (\n\ta, B = 1, 2\n)\n"}, want: "nn/x.go:3: B has no comment"},
		{files: map[string]string{"nn/x.go": "package nn\nvar E error\n"}, want: "nn/x.go:2: E has no comment"},
	},
	"noInit": {
		{files: map[string]string{"nn/x_test.go": "package nn\nfunc init() {}\n"}, want: "nn/x_test.go:2: func init"},
	},
	"noSleepInTests": {
		{files: map[string]string{"nn/x_test.go": "package nn\nimport clock \"time\"\nfunc f() { clock.Sleep(1) }\n"}, want: "nn/x_test.go:3: time.Sleep"},
	},
	"noCudaTag": {
		{files: map[string]string{"cuda/x.go": "//go:build linux && !cuda\n\npackage cuda\n"}, want: "cuda/x.go:1: build tag cuda"},
		{files: map[string]string{"cuda/x.c": "// shim\n//go:build cuda\n\nint x;\n"}, want: "cuda/x.c:2: build tag cuda"},
	},
	"readme": {
		{files: map[string]string{"README.md": strings.Repeat("x\n", 121)}, want: "README.md:121: 121 lines, more than 120"},
		{files: map[string]string{"README.md": "x\n" + strings.Repeat("x", 101)}, want: "README.md:2: 101 characters, more than 100"},
		{files: map[string]string{"README.md": ""}, want: "README.md:1: missing"},
	},
	"panic": {
		{files: map[string]string{"collective/x.go": "package collective\nfunc f() { panic(1) }\n"}, want: "collective/x.go:2: panic"},
	},
	"portableMath": {
		{files: map[string]string{"nn/x.go": "package nn\nimport \"math\"\nvar x = math.Sqrt(2) + math.Exp(2)\n"}, want: "nn/x.go:3: math.Exp"},
		{files: map[string]string{"examples/x/x.go": "// Package x is here.\npackage x\nimport \"math/rand/v2\"\nfunc f(r *rand.Rand) { r.NormFloat64() }\n"},
			want: "examples/x/x.go:4: NormFloat64"},
	},
	"exit": {
		{files: map[string]string{"trainer/x.go": "package trainer\nimport \"os\"\nfunc f() { os.Exit(1) }\n"}, want: "trainer/x.go:3: os.Exit"},
		{files: map[string]string{"trainer/x.go": "package trainer\nimport l \"log\"\nfunc f() { l.Fatalf(``) }\n"}, want: "trainer/x.go:3: log.Fatalf"},
	},
}

// fine is a tree that follows all rules, close to the limits of each.
var fine = map[string]string{
	"README.md": strings.Repeat(strings.Repeat("ä", 100)+"\n", 120),
	"doc.go":    "// Package ringtrain is here.\npackage ringtrain\n",
	"nn/doc.go": "//go:build !gpu\n\n// Package nn is here.\npackage nn\n",
	"nn/long.go": "package nn\nfunc f() {\n" + strings.Repeat("//\n", 78) + "}\n" +
		strings.Repeat("//\n", 419),
	"nn/made.go":      "// Code generated by x. DO NOT EDIT.\n\npackage nn\n" + strings.Repeat("//\n", 900),
	"nn/long_test.go": "package nn\nimport _ \"" + module + "/nn/nntest\"\nfunc g() {\n" + strings.Repeat("//\n", 900) + "}\n",
	"nn/outside_test.go": "package nn_test\nimport (\n\t\"time\"\n\t_ \"" + module + "/nn\"\n)\nvar T = time.After\n" +
		"func Undocumented() { panic(``) }\n",
	"nn/docs.go": "package nn\n// Kinds.\nconst (\n\tA = 1\n\tB = 2 // two\n)\ntype t int\nfunc (t) String() string { panic(`kernel`) }\n" +
		"// Run runs; init is a method.\nfunc (t) init() {}\n",
	"nn/nntest/doc.go":  "// Package nntest is here.\npackage nntest\nimport _ \"" + module + "/nn\"\n",
	"collective/doc.go": "// Package collective is here.\npackage collective\nimport (\n\t_ \"golang.org/x/sys/unix\"\n\t_ \"net\"\n)\n",
	"collective/limits.go": "package collective\ntype z struct {\n" + many(20, "\tf%d int\n") + "}\n" + many(30, "func (*z) f%d() {}\n") +
		"func g(a, b, c, d, e int) {}\n",
	"collective/limits_other.go":     "//go:build !linux\n\npackage collective\nfunc (*z) f0() {}\n",
	"collective/limits_test.go":      "package collective\nfunc h(a, b, c, d, e, f int) {}\n",
	"collective/membership/m.go":     "// Package membership is here.\npackage membership\nimport _ \"github.com/hashicorp/memberlist\"\n",
	"cuda/doc.go":                    "// Package cuda is here.\npackage cuda\n",
	"cuda/x_gpu.go":                  "//go:build gpu && linux\n\npackage cuda\nimport _ \"gorgonia.org/cu\"\n",
	"cuda/x_gpu.c":                   "//go:build gpu\n\n// not the tag cuda\nint x;\n",
	"trainer/doc.go":                 "// Package trainer is here.\npackage trainer\nimport \"time\"\nfunc f() { time.Sleep(1) }\n",
	"trainer/x_test.go":              "package trainer\nimport (\n\t_ \"" + module + "/collective/tcp\"\n\t_ \"" + module + "/nn/models\"\n)\n",
	"trainer/cli/x_test.go":          "package cli_test\nimport _ \"" + module + "/trainer/cli\"\n",
	"trainer/cli/doc.go":             "// Package cli is here.\npackage cli\nimport _ \"" + module + "/collective/cluster\"\n",
	"cmd/ringtrain/main.go":          "// Command ringtrain is here.\npackage main\nimport (\n\t\"os\"\n\t_ \"" + module + "/trainer/cli\"\n)\nfunc main() { os.Exit(1) }\n",
	"nn/testdata/bad.go":             "not Go at all",
	"tools/tools.go":                 "package utils\n",
	".hidden/x.go":                   "package utils\n",
	"collective/collective.s":        "TEXT nothing\n",
	"collective/outside_test.go":     "package collective_test\nimport (\n\t\"os\"\n\t_ \"" + module + "/collective/collectivetest\"\n)\nfunc f() { os.Exit(0) }\n",
	"collective/collectivetest/x.go": "// Package collectivetest is here.\npackage collectivetest\nimport _ \"github.com/stretchr/testify/require\"\n",
	"nn/optim_test.go":               "package nn\nimport _ \"" + module + "/nn/optim\"\n",
}

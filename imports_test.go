package ringtrain

import (
	"fmt"
	"slices"
	"strings"
)

// importTable lists, for each of our packages, which others it may import. "..." is the
// whole tree, "a/..." is a and everything below it, and "-a" excludes a. Imports only
// point down. A new entry changes the design, so first consider whether the code belongs
// in the package with fewer entries. docs/architecture.md describes the cases for which
// the table should not grow.
const importTable = `
.                         :
collective                : collective/schedule collective/fold collective/publish collective/ticks
collective/schedule       :
collective/errtext        :
collective/fold           :
collective/calibration    : collective/procfs collective/schedule collective/userfiles
collective/procfs         :
collective/publish        :
collective/ticks          :
collective/sendqueue      :
collective/secret         : collective/errtext
collective/userfiles      :
collective/version        :
collective/tcp            : collective collective/publish collective/secret collective/sendqueue
collective/shm            : collective collective/calibration collective/procfs collective/schedule collective/fold collective/publish collective/sendqueue
collective/membership     : collective collective/secret
collective/query          : collective collective/errtext collective/secret collective/tcp collective/membership
collective/cluster        : collective collective/calibration collective/errtext collective/schedule collective/fold collective/secret collective/tcp collective/shm collective/membership collective/userfiles collective/version
collective/ncclgroup      : collective cuda nccl
collective/collectivetest : collective collective/schedule
cuda                      : collective/userfiles
cuda/emulator             :
cuda/kernels              : nn
nccl                      : cuda
nn                        : nn/portable
nn/portable               :
nn/cpu                    : nn nn/portable nn/cpu/sgemm
nn/cpu/sgemm              :
nn/gpu                    : nn cuda cuda/kernels
nn/optim                  : nn nn/portable
nn/models                 : nn nn/optim
nn/text                   :
nn/ner                    : nn nn/portable nn/text
nn/graph                  : nn
nn/nntest                 : nn
trainer                   : collective collective/fold nn nn/optim
trainer/trainertest       : collective collective/collectivetest nn nn/cpu nn/models trainer trainer/data
trainer/paramserver       : collective nn nn/cpu nn/optim trainer
trainer/paramserver/keyed : collective nn nn/optim trainer/store
trainer/atomicfile        :
trainer/store             : collective/errtext collective/secret trainer/atomicfile
trainer/checkpoint        : collective/errtext trainer/atomicfile
trainer/config            : collective/errtext
trainer/data              : collective/userfiles nn nn/text trainer/atomicfile
trainer/launch            : collective/userfiles
trainer/trace             : collective trainer trainer/atomicfile
trainer/job/event         : collective collective/query
trainer/job/crew          : collective/... -collective/ncclgroup trainer trainer/launch trainer/trace trainer/job/event
trainer/job/machine       : collective/fold collective/procfs
trainer/job/build         : collective/tcp collective/version
trainer/job/tuned         : collective collective/cluster collective/schedule trainer/data trainer/job/build trainer/job/crew trainer/job/event trainer/job/machine
trainer/job/status        : collective collective/cluster collective/membership collective/query trainer/job/crew trainer/launch trainer/trace
trainer/job/device        : collective/... cuda nccl nn nn/gpu trainer trainer/atomicfile trainer/data trainer/job/crew trainer/job/machine
trainer/job               : collective/... -collective/ncclgroup nn/... -nn/gpu trainer/... -trainer/cli
trainer/sgd               : collective/... nn/... trainer/... -trainer/cli
trainer/catalog           : nn/... trainer/... -trainer/cli
trainer/cli               : collective/... -collective/ncclgroup cuda nn/... -nn/gpu trainer/... bench
bench                     : ... -trainer/cli -cmd/...
cmd/ringtrain             : trainer/cli trainer/catalog
cmd/ringtrain/screens     : trainer/cli trainer/catalog
scripts/gpu/emulate       : cuda/emulator
scripts/gpu/image         : cuda/kernels cuda/emulator
scripts/gpu/speed         : cuda nn nn/gpu nn/models nn/optim
scripts/gpu/visit         :
scripts/peers             : bench scripts/peers/rounds
scripts/peers/ddp         : bench scripts/peers/rounds
scripts/peers/gemm        : nn/cpu nn/cpu/sgemm
scripts/peers/ner         : scripts/peers/rounds
scripts/peers/ray         : bench scripts/peers/rounds
scripts/peers/rounds      : bench
scripts/peers/step        : bench collective nn nn/cpu nn/graph nn/models nn/optim trainer trainer/data scripts/peers/rounds
scripts/peers/streams     : trainer/launch
scripts/peers/transformer : bench trainer/data scripts/peers/rounds
examples/actors           : trainer/launch trainer/store
examples/custom           : nn nn/portable trainer trainer/data trainer/config trainer/catalog trainer/cli
examples/distributed_sgd  : collective nn nn/cpu nn/optim trainer trainer/data trainer/checkpoint trainer/job/crew trainer/job/event trainer/sgd
examples/gorgonia         : nn/graph trainer/catalog trainer/cli trainer/config
examples/...              : ... -trainer/cli -cmd/...
`

// testKits are packages that the tests of every package may import. Other files may
// import them only if their row names them.
var testKits = []string{"collective/collectivetest", "nn/nntest", "trainer/trainertest", "cuda/emulator"}

// A row is one line of importTable.
type row struct {
	pkg     string
	allowed []string
}

func importRows() []row {
	var rows []row
	for line := range strings.Lines(importTable) {
		pkg, allowed, ok := strings.Cut(line, ":")
		if ok {
			rows = append(rows, row{strings.TrimSpace(pkg), strings.Fields(allowed)})
		}
	}
	return rows
}

// allows reports whether the row lets its package import dir. The last matching
// pattern decides.
func (r row) allows(dir string) bool {
	if slices.Contains(testKits, dir) {
		return slices.Contains(r.allowed, dir)
	}
	yes := false
	for _, pattern := range r.allowed {
		plain, minus := strings.CutPrefix(pattern, "-")
		if matches(plain, dir) {
			yes = !minus
		}
	}
	return yes
}

// allowsTest reports whether tests of the package may import dir even if the package
// itself may not. They may import test kits and, except for the commands, whole families:
// a test of trainer may train a model of nn/models and a test of nn may use nn/cpu, but
// no test of nn needs collective.
func (r row) allowsTest(dir string) bool {
	if slices.Contains(testKits, dir) {
		return true
	}
	if under(dir, "trainer/cli", "cmd") {
		return dir == r.pkg
	}
	return slices.ContainsFunc(append([]string{r.pkg}, r.allowed...), func(known string) bool {
		return family(known) == family(dir)
	})
}

// family returns the top directory of a package.
func family(dir string) string {
	top, _, _ := strings.Cut(dir, "/")
	return top
}

// matches reports whether dir matches a pattern of the table.
func matches(pattern, dir string) bool {
	if pattern == "..." {
		return true
	}
	if root, ok := strings.CutSuffix(pattern, "/..."); ok {
		return under(dir, root)
	}
	return pattern == dir
}

func checkImports(t *tree) []violation {
	rows := importRows()
	var found []violation
	seen := map[string]bool{}
	for _, f := range t.files {
		i := slices.IndexFunc(rows, func(r row) bool { return matches(r.pkg, f.dir) })
		if i < 0 {
			if !seen[f.dir] {
				found = append(found, t.violation(f.Package, "move it to the package where it belongs (docs/architecture.md), or add a row and give the reason", "package %s has no row in importTable", f.dir))
			}
			seen[f.dir] = true
			continue
		}
		found = append(found, t.importsBeyond(f, rows[i])...)
	}
	return found
}

// importsBeyond returns the imports of f that its package's row does not allow.
func (t *tree) importsBeyond(f *file, r row) []violation {
	var found []violation
	for _, spec := range f.Imports {
		dir, ours := ourDir(importPath(spec))
		if !ours || r.allows(dir) || f.test && r.allowsTest(dir) {
			continue
		}
		who := f.dir
		if f.test {
			who = "a test of " + f.dir
		}
		may := "none of our packages"
		if len(r.allowed) > 0 {
			may = strings.Join(r.allowed, " ")
		}
		found = append(found, t.violation(spec.Pos(), fmt.Sprintf("it may import %s; take the value as an argument or through a small interface, or move the code up", may),
			"%s may not import %s", who, dir))
	}
	return found
}

// ourDir converts an import path of this module to a directory of the tree.
func ourDir(imported string) (dir string, ours bool) {
	if imported == module {
		return ".", true
	}
	return strings.CutPrefix(imported, module+"/")
}

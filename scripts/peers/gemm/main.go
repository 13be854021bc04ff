// Command gemm times ringtrain's matrix products, OpenBLAS's and gonum's on one thread, and
// prints a Markdown table with a line for each shape. Each round measures every library once
// on each shape, so that a change of the machine's speed affects them equally.
// scripts/bench-gemm.sh runs it for each instruction set.
//
//	gemm [-rounds N] [-shapes all|cubes|networks|small] [-gonum=false] [-require RATIO]
//
// Without OpenBLAS its columns are empty. The exit code is 1 if a ratio to OpenBLAS is lower
// than required.
package main

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/cpu/sgemm"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("gemm", flag.ContinueOnError)
	flags.SetOutput(stderr)
	rounds := flags.Int("rounds", 7, "how often every library computes each product")
	shapes := flags.String("shapes", "all", "which products: all, or some of "+strings.Join(groups(), ","))
	slow := flags.Bool("gonum", true, "measure gonum, too")
	require := flags.Float64("require", 0, "the minimum ratio of speed to OpenBLAS's")
	if flags.Parse(args) != nil {
		return 2
	}
	chosen := pick(*shapes)
	if len(chosen) == 0 || *rounds < 1 || flags.NArg() > 0 {
		fmt.Fprintf(stderr, "gemm: no shapes in %q, no rounds, or arguments that are not flags; see -help\n", *shapes)
		return 2
	}
	all := libraries(stderr, *slow)
	fmt.Fprintf(stdout, "| product | m x n x k | %s | OpenBLAS | gonum | / OpenBLAS | / gonum |\n|---|---|---|---|---|---|---|\n", all[ours].name)
	worst := 0.
	for i, s := range chosen {
		speeds := measure(all, s, *rounds)
		fmt.Fprintln(stdout, line(s, speeds))
		if ratio := speeds[ours] / speeds[openBLAS]; speeds[openBLAS] > 0 && (i == 0 || ratio < worst) {
			worst = ratio
		}
	}
	if worst < *require {
		fmt.Fprintf(stderr, "gemm: the lowest ratio to OpenBLAS is %.2f, but must be at least %.2f\n", worst, *require)
		return 1
	}
	return 0
}

// The indexes of libraries. Those that were not measured have no multiply.
const (
	ours = iota
	openBLAS
	goNum
	libraryCount
)

// A library multiplies matrices.
type library struct {
	name     string
	multiply func(c, a, b sgemm.Matrix, s sgemm.Shape, beta float32)
}

func libraries(stderr io.Writer, slow bool) (all [libraryCount]library) {
	x := sgemm.New()
	all[ours] = library{strings.TrimSpace("ringtrain " + x.Instructions()), x.Multiply}
	if lib, err := cpu.OpenBLAS(); err != nil {
		fmt.Fprintf(stderr, "gemm: not measured: %v\n", err)
	} else {
		all[openBLAS] = library{fmt.Sprint(lib), lib.Multiply}
		fmt.Fprintf(stderr, "gemm: %v\n", lib)
	}
	if slow {
		all[goNum] = library{"gonum", goNumMultiply}
	}
	return all
}

// goNumMultiply calls gonum like a Multiplier.
func goNumMultiply(c, a, b sgemm.Matrix, s sgemm.Shape, beta float32) {
	order := func(m sgemm.Matrix) blas.Transpose {
		if m.Transposed {
			return blas.Trans
		}
		return blas.NoTrans
	}
	gonum.Implementation{}.Sgemm(order(a), order(b), s.M, s.N, s.K, 1, a.Data, a.Stride, b.Data, b.Stride, beta, c.Data, c.Stride)
}

// measure returns the median speed of each library in GFLOP/s, or 0.
func measure(all [libraryCount]library, s shape, rounds int) (speeds [libraryCount]float64) {
	r := random()
	a, b, c := matrix(r, s.M, s.K, s.transA), matrix(r, s.K, s.N, s.transB), matrix(r, s.M, s.N, false)
	flops := 2 * float64(s.M) * float64(s.N) * float64(s.K)
	var times [libraryCount][]float64
	for round := range rounds {
		for l, lib := range all {
			if lib.multiply == nil || l == goNum && flops > 2e9 && round > 0 {
				continue
			}
			call := func() { lib.multiply(c, a, b, s.Shape, s.beta) }
			repeat(call, settling)
			times[l] = append(times[l], repeat(call, measuring).Seconds())
		}
	}
	for l, t := range times {
		if len(t) > 0 {
			slices.Sort(t)
			speeds[l] = flops / t[len(t)/2] / 1e9
		}
	}
	return speeds
}

// A library runs for settling before it is measured for measuring. A processor needs some
// milliseconds to reach its speed after another library's instructions.
const (
	settling  = 8 * time.Millisecond
	measuring = 8 * time.Millisecond
)

// repeat calls f for at least the given time, and returns the time per call.
func repeat(f func(), least time.Duration) time.Duration {
	begin := clock()
	for calls := 1; ; calls *= 2 {
		for range calls {
			f()
		}
		if took := clock() - begin; took >= least {
			return took / time.Duration(2*calls-1)
		}
	}
}

func random() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// matrix returns a random matrix. Small values keep sums finite over many calls.
func matrix(r *rand.Rand, rows, columns int, transposed bool) sgemm.Matrix {
	if transposed {
		rows, columns = columns, rows
	}
	v := make([]float32, rows*columns)
	for i := range v {
		v[i] = r.Float32() - .5
	}
	return sgemm.Matrix{Data: v, Stride: columns, Transposed: transposed}
}

func line(s shape, speeds [libraryCount]float64) string {
	cell := func(format string, v float64) string {
		if v == 0 {
			return ""
		}
		return fmt.Sprintf(format, v)
	}
	ratio := func(other int) float64 {
		if speeds[other] == 0 {
			return 0
		}
		return speeds[ours] / speeds[other]
	}
	return fmt.Sprintf("| %s | %d x %d x %d %s | %.1f | %s | %s | %s | %s |", s.name, s.M, s.N, s.K, s.order(), speeds[ours],
		cell("%.1f", speeds[openBLAS]), cell("%.1f", speeds[goNum]), cell("%.2f", ratio(openBLAS)), cell("%.1f", ratio(goNum)))
}

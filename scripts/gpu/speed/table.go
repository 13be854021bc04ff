package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// A row is one measurement.
type row struct {
	Model   string
	Way     string
	Numbers string  // fp32, TF32 or bf16
	US      float64 // per step, the median of the rounds
	Torch   bool    // measured with PyTorch
}

// A table has our measurements and PyTorch's.
type table struct {
	Torch string // version of PyTorch; "" without it
	Rows  []row
	notes []string
}

func (t *table) add(r row) { t.Rows = append(t.Rows, r) }

func (t *table) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

// us returns a measurement, or NaN if there is none.
func (t *table) us(model, way, numbers string) float64 {
	for _, r := range t.Rows {
		if r.Model == model && r.Way == way && r.Numbers == numbers {
			return r.US
		}
	}
	return math.NaN()
}

// ways returns our or PyTorch's ways for a model, in the order of measurement.
func (t *table) ways(model string, torch bool) (names []string) {
	for _, r := range t.Rows {
		if r.Model == model && r.Torch == torch && !slices.Contains(names, r.Way) {
			names = append(names, r.Way)
		}
	}
	return names
}

// text returns a number with this many decimals, or a dash if it is not finite.
func text(x float64, digits int) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "-"
	}
	return fmt.Sprintf("%.*f", digits, x)
}

// write writes the times of the small networks, ours first. Each is also given relative to our
// graph of one step.
func (t *table) write(w io.Writer, rounds, rows int) {
	fmt.Fprintf(w, "\n#### A training step\n\nMicroseconds per step (forward, backward and update), batch %d, data on the device. Medians of %d rounds in which all ways alternate. ", rows, rounds)
	fmt.Fprint(w, "ringtrain clips gradients and keeps averages of the parameters, like Thinc. PyTorch does neither. In brackets: relative to ringtrain's graph of one step.\n\n")
	fmt.Fprint(w, "| model | way | fp32 | TF32 |\n|---|---|---|---|\n")
	for _, n := range networks(rows) {
		base := func(numbers string) float64 { return t.us(n.name, byGraph, numbers) }
		for _, torch := range []bool{false, true} {
			of := "ringtrain"
			if torch {
				of = "PyTorch " + t.Torch
			}
			for _, way := range t.ways(n.name, torch) {
				cell := func(numbers string) string {
					us := t.us(n.name, way, numbers)
					return fmt.Sprintf("%s (%s)", text(us, 1), text(us/base(numbers), 2))
				}
				fmt.Fprintf(w, "| %s | %s, %s | %s | %s |\n", n.name, of, way, cell("fp32"), cell("TF32"))
			}
		}
	}
}

// writeNotes writes the numbers of nodes, and failed measurements.
func (t *table) writeNotes(w io.Writer) {
	fmt.Fprintf(w, "\nNotes: %s.\n", strings.Join(t.notes, "; "))
}

// squareProducts is the number of matrix products in a step of four layers.
const squareProducts = 4 + 4 + 3

// share returns the rate of the square network as a fraction of that of one product alone.
func (t *table) share(alone map[string]float64, way, numbers string) float64 {
	return squareProducts * alone[numbers] / t.us("square", way, numbers)
}

const eager = "eager, fused optimizer"

// writeSquare writes the rates of the square network.
func writeSquare(w io.Writer, t *table, alone map[string]float64, width int) {
	rate := func(us float64, products int) string {
		return text(float64(products)*2*math.Pow(float64(width), 3)/us/1e6, 1)
	}
	fmt.Fprintf(w, "\n#### Four layers of %d, batch %d, SGD\n\nTFLOP/s of the %d products, and their share of the rate of one such product alone with cuBLASLt, in the same run. ", width, width, squareProducts)
	fmt.Fprint(w, "ringtrain's layers have biases, PyTorch's do not. In bf16, ringtrain keeps everything but the factors of products in float32; PyTorch and the one product are bf16 throughout.\n\n")
	fmt.Fprint(w, "| numbers | one product | ringtrain, one graph | share | PyTorch, eager | share |\n|---|---|---|---|---|---|\n")
	for _, numbers := range []string{"fp32", "TF32", "bf16"} {
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s |\n", numbers, rate(alone[numbers], 1),
			rate(t.us("square", byGraph, numbers), squareProducts), text(t.share(alone, byGraph, numbers), 2),
			rate(t.us("square", eager, numbers), squareProducts), text(t.share(alone, eager, numbers), 2))
	}
}

// writeGoals writes how the figures compare with the goals, and reports whether all goals are
// met. A goal that was not measured is not met.
func writeGoals(w io.Writer, t *table, alone map[string]float64) bool {
	const capture = "whole step in one CUDA graph, fused optimizer"
	against := func(model, way string) float64 { return t.us(model, way, "fp32") / t.us(model, byGraph, "fp32") }
	fmt.Fprint(w, "\n#### Goals\n\n| goal | at least | measured | |\n|---|---|---|---|\n")
	met := true
	for _, g := range []struct {
		what  string
		least float64
		got   float64
	}{
		{"MLP, times PyTorch eager", 8, against("MLP", eager)},
		{"MLP, times PyTorch's graph", 1.5, against("MLP", capture)},
		{"ConvNet, times PyTorch eager", 10, against("ConvNet", eager)},
		{"four layers in TF32, share of cuBLASLt's rate", .7, t.share(alone, byGraph, "TF32")},
		{"four layers in bf16, share of cuBLASLt's rate", .7, t.share(alone, byGraph, "bf16")},
	} {
		verdict := "met"
		if !(g.got >= g.least) {
			verdict, met = "NOT MET", false
		}
		fmt.Fprintf(w, "| %s | %v | %s | %s |\n", g.what, g.least, text(g.got, 2), verdict)
	}
	return met
}

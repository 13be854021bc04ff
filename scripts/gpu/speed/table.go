package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
)

// A row is one measurement.
type row struct {
	Model   string  `json:"model"`
	Way     string  `json:"way"`
	Numbers string  `json:"numbers"` // fp32, TF32 or bf16
	US      float64 `json:"us"`      // of a step
}

// A table is measurements, ours or PyTorch's.
type table struct {
	Torch string `json:"torch"` // its version
	Rows  []row  `json:"rows"`
	notes []string
}

func readTable(path string) (*table, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	t := &table{}
	if err := json.Unmarshal(text, t); err != nil {
		return nil, fmt.Errorf("%s is not what baselines.py writes: %w", path, err)
	}
	return t, nil
}

func (t *table) add(r row) { t.Rows = append(t.Rows, r) }

// us is a measurement, NaN if there is none.
func (t *table) us(model, way, numbers string) float64 {
	if t != nil {
		for _, r := range t.Rows {
			if r.Model == model && r.Way == way && r.Numbers == numbers {
				return r.US
			}
		}
	}
	return math.NaN()
}

// ways are those of a model, in the order they were measured.
func (t *table) ways(model string) (names []string) {
	if t == nil {
		return nil
	}
	seen := map[string]bool{}
	for _, r := range t.Rows {
		if r.Model == model && !seen[r.Way] {
			seen[r.Way] = true
			names = append(names, r.Way)
		}
	}
	return names
}

// text is a number with so many digits after the point, or a dash.
func text(x float64, digits int) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "-"
	}
	return fmt.Sprintf("%.*f", digits, x)
}

// write writes the small networks' times, ours first, with what share of the time
// of our graph each takes.
func (t *table) write(w io.Writer, torch *table, rounds, rows int) {
	fmt.Fprintf(w, "\n#### A training step\n\nMicroseconds of a step: forward, backward and update, batch %d, data on the device; the least of %d means. ", rows, rounds)
	fmt.Fprint(w, "Ours clips gradients and keeps Adam's averages, as Thinc does, and PyTorch does not. In brackets: times our graph of one step.\n\n")
	fmt.Fprint(w, "| model | way | fp32 | TF32 |\n|---|---|---|---|\n")
	for _, n := range networks(rows) {
		base := func(numbers string) float64 { return t.us(n.name, byGraph, numbers) }
		for _, from := range []struct {
			of    string
			table *table
		}{{"ringtrain", t}, {"PyTorch", torch}} {
			for _, way := range from.table.ways(n.name) {
				cell := func(numbers string) string {
					us := from.table.us(n.name, way, numbers)
					return fmt.Sprintf("%s (%s)", text(us, 1), text(us/base(numbers), 2))
				}
				fmt.Fprintf(w, "| %s | %s, %s | %s | %s |\n", n.name, from.of, way, cell("fp32"), cell("TF32"))
			}
		}
	}
	fmt.Fprintf(w, "\nNodes: %s.\n", strings.Join(t.notes, "; "))
}

// squareProducts is how many products of four layers a step takes.
const squareProducts = 4 + 4 + 3

// share is what part of the rate of one product alone the square network has.
func (t *table) share(alone map[string]float64, way, numbers string) float64 {
	return squareProducts * alone[numbers] / t.us("square", way, numbers)
}

const eager = "eager, fused optimizer"

// writeSquare writes the rates of the square network.
func writeSquare(w io.Writer, ours, torch *table, alone map[string]float64, width int) {
	rate := func(us float64, products int) string {
		return text(float64(products)*2*math.Pow(float64(width), 3)/us/1e6, 1)
	}
	fmt.Fprintf(w, "\n#### Four layers of %d, batch %d, SGD\n\nTFLOP/s of the %d products, and the share of the rate of one such product alone, by cuBLASLt, in the same run. ", width, width, squareProducts)
	fmt.Fprint(w, "Ours have biases, PyTorch's have not; in bf16 ours keep all but the factors of products in float32, and PyTorch's and the one product keep all in bf16.\n\n")
	fmt.Fprint(w, "| numbers | one product | ringtrain, one graph | share | PyTorch, eager | share |\n|---|---|---|---|---|---|\n")
	for _, numbers := range []string{"fp32", "TF32", "bf16"} {
		fmt.Fprintf(w, "| %s | %s | %s | %s | %s | %s |\n", numbers, rate(alone[numbers], 1),
			rate(ours.us("square", byGraph, numbers), squareProducts), text(ours.share(alone, byGraph, numbers), 2),
			rate(torch.us("square", eager, numbers), squareProducts), text(torch.share(alone, eager, numbers), 2))
	}
}

// writeGoals sets the figures against what they are meant to be, and reports
// whether all that could be measured is as good.
func writeGoals(w io.Writer, ours, torch *table, alone map[string]float64) bool {
	const capture = "whole step in one CUDA graph, fused optimizer"
	against := func(model, way string) float64 { return torch.us(model, way, "fp32") / ours.us(model, byGraph, "fp32") }
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
		{"four layers in TF32, share of cuBLASLt's rate", .7, ours.share(alone, byGraph, "TF32")},
		{"four layers in bf16, share of cuBLASLt's rate", .7, ours.share(alone, byGraph, "bf16")},
	} {
		verdict := "met"
		if !(g.got >= g.least) {
			verdict, met = "NOT MET", false
		}
		fmt.Fprintf(w, "| %s | %v | %s | %s |\n", g.what, g.least, text(g.got, 2), verdict)
	}
	return met
}

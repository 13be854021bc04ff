package main

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// both returns a table of our times and PyTorch's. mlp is ours for a graph of MLP.
func both(mlp float64) *table {
	return &table{Torch: "2.11.0", Rows: []row{
		{"MLP", byGraph, "fp32", mlp, false}, {"ConvNet", byGraph, "fp32", 40, false},
		{"square", byGraph, "TF32", 15000, false}, {"square", byGraph, "bf16", 11000, false},
		{"MLP", eager, "fp32", 400, true}, {"MLP", "whole step in one CUDA graph, fused optimizer", "fp32", 80, true},
		{"ConvNet", eager, "fp32", 500, true}, {"square", eager, "TF32", 22000, true},
	}}
}

func TestGoals(t *testing.T) {
	alone := map[string]float64{"TF32": 1000, "bf16": 800}
	var met, missed strings.Builder
	require.True(t, writeGoals(&met, both(50), alone))
	require.Contains(t, met.String(), "| MLP, times PyTorch eager | 8 | 8.00 | met |")
	require.Contains(t, met.String(), "| four layers in TF32, share of cuBLASLt's rate | 0.7 | 0.73 | met |")
	require.Contains(t, met.String(), "| four layers in bf16, share of cuBLASLt's rate | 0.7 | 0.80 | met |")
	require.False(t, writeGoals(&missed, both(60), alone))
	require.Contains(t, missed.String(), "| MLP, times PyTorch eager | 8 | 6.67 | NOT MET |")
	require.False(t, writeGoals(&missed, &table{}, alone), "goals that were not measured are not met")
	require.Contains(t, missed.String(), "| ConvNet, times PyTorch eager | 10 | - | NOT MET |")
}

func TestTables(t *testing.T) {
	var b strings.Builder
	all := both(50)
	all.write(&b, 5, 128)
	require.Contains(t, b.String(), "| MLP | ringtrain, one graph a step | 50.0 (1.00) | - (-) |")
	require.Contains(t, b.String(), "| MLP | PyTorch 2.11.0, eager, fused optimizer | 400.0 (8.00) | - (-) |")
	b.Reset()
	writeSquare(&b, all, map[string]float64{"TF32": 1000}, 4096)
	require.Contains(t, b.String(), "| TF32 | 137.4 | 100.8 | 0.73 | 68.7 | 0.50 |")
	b.Reset()
	(&table{Rows: all.Rows[:4]}).write(&b, 1, 8)
	require.NotContains(t, b.String(), "| PyTorch")
	all.note("MLP: %d nodes", 17)
	all.writeNotes(&b)
	require.Contains(t, b.String(), "Notes: MLP: 17 nodes.")
}

func TestMedian(t *testing.T) {
	require.True(t, math.IsNaN(median(nil)))
	require.Equal(t, 2., median([]float64{9, 1, 2}))
	require.Equal(t, 2.5, median([]float64{9, 1, 2, 3}))
}

package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const torchJSON = `{"torch": "2.11.0", "rows": [
	{"model": "MLP", "way": "eager, fused optimizer", "numbers": "fp32", "us": 400},
	{"model": "MLP", "way": "whole step in one CUDA graph, fused optimizer", "numbers": "fp32", "us": 80},
	{"model": "ConvNet", "way": "eager, fused optimizer", "numbers": "fp32", "us": 500},
	{"model": "square", "way": "eager, fused optimizer", "numbers": "TF32", "us": 22000}
]}`

func torchTable(t *testing.T) *table {
	path := filepath.Join(t.TempDir(), "torch.json")
	require.NoError(t, os.WriteFile(path, []byte(torchJSON), 0o600))
	torch, err := readTable(path)
	require.NoError(t, err)
	return torch
}

// ours are times of which MLP's is given.
func ours(mlp float64) *table {
	return &table{Rows: []row{{"MLP", byGraph, "fp32", mlp}, {"ConvNet", byGraph, "fp32", 40}, {"square", byGraph, "TF32", 15000}, {"square", byGraph, "bf16", 11000}}}
}

func TestGoals(t *testing.T) {
	alone := map[string]float64{"TF32": 1000, "bf16": 800}
	var met, missed strings.Builder
	require.True(t, writeGoals(&met, ours(50), torchTable(t), alone))
	require.Contains(t, met.String(), "| MLP, times PyTorch eager | 8 | 8.00 | met |")
	require.Contains(t, met.String(), "| four layers in TF32, share of cuBLASLt's rate | 0.7 | 0.73 | met |")
	require.Contains(t, met.String(), "| four layers in bf16, share of cuBLASLt's rate | 0.7 | 0.80 | met |")
	require.False(t, writeGoals(&missed, ours(60), torchTable(t), alone))
	require.Contains(t, missed.String(), "| MLP, times PyTorch eager | 8 | 6.67 | NOT MET |")
	require.False(t, writeGoals(&missed, ours(50), &table{}, alone), "what was not measured is no goal met")
	require.Contains(t, missed.String(), "| ConvNet, times PyTorch eager | 10 | - | NOT MET |")
}

func TestTables(t *testing.T) {
	var b strings.Builder
	mine, torch := ours(50), torchTable(t)
	mine.write(&b, torch, 5, 128)
	require.Contains(t, b.String(), "| MLP | ringtrain, one graph a step | 50.0 (1.00) | - (-) |")
	require.Contains(t, b.String(), "| MLP | PyTorch, eager, fused optimizer | 400.0 (8.00) | - (-) |")
	b.Reset()
	writeSquare(&b, mine, torch, map[string]float64{"TF32": 1000}, 4096)
	require.Contains(t, b.String(), "| TF32 | 137.4 | 100.8 | 0.73 | 68.7 | 0.50 |")
	b.Reset()
	mine.write(&b, nil, 1, 8)
	require.NotContains(t, b.String(), "| PyTorch")
	_, err := readTable(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// The least mean of the rounds counts, and failures are not lost.
func TestClock(t *testing.T) {
	calls, syncs := 0, 0
	us, err := clock{warmup: 5, steps: 16, rounds: 3}.measure(func() error { calls++; return nil }, func() error { syncs++; return nil }, 8)
	require.NoError(t, err)
	require.Equal(t, 1+3*2, calls)
	require.Equal(t, 1+3, syncs)
	require.False(t, math.IsNaN(us))
	_, err = clock{warmup: 1, steps: 1, rounds: 1}.measure(func() error { return os.ErrClosed }, func() error { return nil }, 1)
	require.ErrorIs(t, err, os.ErrClosed)
	_, err = clock{warmup: 1, steps: 1, rounds: 1}.measure(func() error { return nil }, func() error { return os.ErrClosed }, 1)
	require.ErrorIs(t, err, os.ErrClosed)
}

//go:build gpu && cgo && linux

package cli_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// losses are losses by name of the examples.
var losses = map[string][]string{
	"classify.cfg":   {"--task.loss", `{"@losses": "CategoricalCrossentropy.v3", "label_smoothing": 0.1}`},
	"regression.cfg": {"--task.loss", `{"@losses": "HuberLoss.v1", "delta": 0.3}`},
}

// GPUs give the losses of the CPU on rows of CSV files, with recorded steps that gather
// their own rows and without.
func TestGPUColumns(t *testing.T) {
	path := cups(t, 60)
	for _, c := range columns {
		for _, graphs := range []string{"whole", "off"} {
			t.Run(c.example+" "+graphs, func(t *testing.T) {
				args := trainCSV(c.example, path, c.target, "--steps", "8", "--transport", "auto", "--workers", "2")
				if graphs == "whole" {
					args = append(args, losses[c.example]...)
				}
				want := train(t, append(args, "--device", "cpu")...)
				got, _ := trainOnGPUs(t, append(args, "--device", "cuda", "--share-gpu", "--graphs", graphs)...)
				sameLosses(t, want, got)
				require.Contains(t, last(got).BLAS, "cuBLASLt")
			})
		}
	}
}

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn/cpu/sgemm"
)

// Every library computes the same product.
func TestLibrariesAgree(t *testing.T) {
	var errs bytes.Buffer
	for _, s := range shapes {
		if s.M*s.N*s.K > 1<<22 {
			continue
		}
		a, b := matrix(random(), s.M, s.K, s.transA), matrix(random(), s.K, s.N, s.transB)
		var first []float32
		for _, lib := range libraries(&errs, true) {
			if lib.multiply == nil {
				continue
			}
			c := sgemm.Matrix{Data: make([]float32, s.M*s.N), Stride: s.N}
			lib.multiply(c, a, b, s.Shape, s.beta)
			if first == nil {
				first = c.Data
			}
			require.InDeltaSlice(t, first, c.Data, 1e-4, "%s %v %s", lib.name, s.Shape, s.order())
		}
	}
}

func TestRun(t *testing.T) {
	run := func(args ...string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		code = run(args, &out, &errs)
		return code, out.String(), errs.String()
	}
	code, stdout, stderr := run("-rounds", "1", "-shapes", networks, "-gonum=false")
	require.Zero(t, code, stderr)
	require.Equal(t, 2+len(pick(networks)), strings.Count(stdout, "\n"), stdout)
	require.Contains(t, stdout, "| mlp 1, forward | 128 x 128 x 784 NT | ")
	for _, args := range [][]string{{"-shapes", "huge"}, {"-rounds", "0"}, {"-nosuch"}, {"more"}} {
		code, stdout, _ = run(args...)
		require.Equal(t, 2, code)
		require.Empty(t, stdout)
	}
}

func TestLine(t *testing.T) {
	s := shape{cubes, "cube", size(2, 3, 4), true, false, 0}
	require.Equal(t, "| cube | 2 x 3 x 4 TN | 90.0 | 100.0 | 10.0 | 0.90 | 9.0 |", line(s, [libraryCount]float64{90, 100, 10}))
	require.Equal(t, "| cube | 2 x 3 x 4 TN | 90.0 |  |  |  |  |", line(s, [libraryCount]float64{90}))
}

func TestRepeat(t *testing.T) {
	calls := 0
	took := repeat(func() { calls++ }, 20*time.Millisecond)
	require.Greater(t, calls, 1)
	require.Less(t, took, 20*time.Millisecond)
}

//go:build gpu && cgo && linux

package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/cuda/emulator"
)

// The task trains on a GPU without a line about GPUs: the loss in kernels, the sines on
// the host. Weights differ from those of the CPU by rounding only.
func TestGPU(t *testing.T) {
	if os.Getenv("RINGTRAIN_REQUIRE_GPU") == "" {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		env, err := emulator.BuildShared(ctx)
		if errors.Is(err, emulator.ErrNoCompiler) {
			t.Skip(err)
		}
		require.NoError(t, err)
		for _, setting := range env {
			name, value, _ := strings.Cut(setting, "=")
			t.Setenv(name, value)
		}
	}
	short := []string{"--steps", "10", "--batch", "16"}
	onCPU := trained(t, append(short, "--workers", "2", "--device", "cpu")...)
	onGPU := trained(t, append(short, "--workers", "2", "--device", "cuda", "--share-gpu")...)
	require.InDelta(t, onCPU.Loss, onGPU.Loss, 1e-4)
	require.InDelta(t, onCPU.MAE, onGPU.MAE, 1e-4)
	require.Contains(t, refused(t, waves("--workers", "1", "--device", "cuda", "--graphs", "whole")...), "cannot keep its rows in the memory of a GPU")
}

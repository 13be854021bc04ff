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

// The graph computes on the host while the rest of the network is on a GPU. Weights differ
// from those of the CPU by rounding only.
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
	short := []string{"--steps", "5", "--batch", "16", "--workers", "2"}
	onCPU := trained(t, append(short, "--device", "cpu")...)
	onGPU := trained(t, append(short, "--device", "cuda", "--share-gpu")...)
	require.InDelta(t, onCPU.Loss, onGPU.Loss, 1e-4)
	_, stderr, code := run(t, "train", "highway.cfg", "--workers", "1", "--device", "cuda", "--graphs", "whole")
	require.Equal(t, 2, code)
	require.Contains(t, stderr, "--graphs whole: the layer layers.1 computes on the host")
}

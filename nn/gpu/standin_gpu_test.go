//go:build gpu && cgo && linux

package gpu_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/ringtrain/ringtrain/cuda/emulator"
)

// standIn makes the rest of the process use the stand-in for a GPU, which needs g++.
func standIn() error {
	env, err := emulator.Build(context.Background(), filepath.Join(os.TempDir(), "ringtrain-emulator"))
	if err != nil {
		return err
	}
	for _, setting := range env {
		name, value, _ := strings.Cut(setting, "=")
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return nil
}

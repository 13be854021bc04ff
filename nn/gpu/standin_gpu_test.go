//go:build gpu && cgo && linux

package gpu_test

import (
	"context"
	"os"
	"strings"

	"github.com/ringtrain/ringtrain/cuda/emulator"
)

// standIn builds the emulator, which needs g++, and makes this process use it.
func standIn() error {
	env, err := emulator.BuildShared(context.Background())
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

package cpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/nntest"
)

func TestBackend(t *testing.T) {
	nntest.TestBackend(t, func(*testing.T) nn.Backend { return cpu.New(cpu.Options{}) })
}

func TestBLASName(t *testing.T) {
	t.Setenv(cpu.EnvOpenBLAS, "")
	require.Equal(t, "ringtrain fma256", cpu.New(cpu.Options{}).BLAS())
	require.Equal(t, "*cpu_test.counting", cpu.New(cpu.Options{BLAS: new(counting)}).BLAS())
}

package cpu_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/nntest"
)

func TestBackend(t *testing.T) {
	nntest.TestBackend(t, func(*testing.T) nn.Backend { return cpu.New(cpu.Options{BLAS: gonum.Implementation{}}) })
}

func TestBLASName(t *testing.T) {
	require.Regexp(t, "^gonum "+runtime.GOARCH+" (assembly|Go)( FMA)?$", cpu.New(cpu.Options{BLAS: gonum.Implementation{}}).BLAS())
	require.Equal(t, "*cpu_test.counting", cpu.New(cpu.Options{BLAS: new(counting)}).BLAS())
}

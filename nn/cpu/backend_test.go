package cpu_test

import (
	"testing"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/nntest"
)

func TestBackend(t *testing.T) {
	nntest.TestBackend(t, func(*testing.T) nn.Backend { return cpu.New(cpu.Options{}) })
}

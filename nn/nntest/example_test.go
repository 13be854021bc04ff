package nntest_test

import (
	"testing"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/nn/nntest"
)

// Test your own layer with one call.
func ExampleCheckGradients() {
	_ = func(t *testing.T) { // func TestMyLayer
		nntest.CheckGradients(t, cpu.New(cpu.Options{}), &nn.Relu{Out: 4, Dropout: .1}, []int{5}, 6)
	}
}

// Test your own backend with one call.
func ExampleTestBackend() {
	_ = func(t *testing.T) { // func TestMyBackend
		nntest.TestBackend(t, func(*testing.T) nn.Backend { return cpu.New(cpu.Options{}) })
	}
}

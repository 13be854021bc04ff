package main

import (
	"slices"
	"strings"

	"github.com/ringtrain/ringtrain/nn/cpu/sgemm"
)

// A shape is a product to measure.
type shape struct {
	group, name string
	sgemm.Shape
	transA, transB bool
	beta           float32
}

// order names the transposes as BLAS does.
func (s shape) order() string {
	letter := map[bool]string{false: "N", true: "T"}
	return letter[s.transA] + letter[s.transB]
}

// The groups of products.
const (
	cubes    = "cubes"
	networks = "networks"
	small    = "small"
)

func groups() []string { return []string{cubes, networks, small} }

func size(m, n, k int) sgemm.Shape { return sgemm.Shape{M: m, N: n, K: k} }

// shapes are squares, every product of the two example networks with 128 rows, and small or
// thin ones.
var shapes = []shape{
	{cubes, "cube", size(256, 256, 256), false, false, 0},
	{cubes, "cube", size(512, 512, 512), false, false, 0},
	{cubes, "cube", size(1024, 1024, 1024), false, false, 0},
	{cubes, "cube", size(2048, 2048, 2048), false, false, 0},
	{cubes, "cube", size(1024, 1024, 1024), false, true, 0},
	{cubes, "cube", size(1024, 1024, 1024), true, false, 1},

	{networks, "mlp 1, forward", size(128, 128, 784), false, true, 0},
	{networks, "mlp 2, forward", size(128, 128, 128), false, true, 0},
	{networks, "mlp 3, forward", size(128, 10, 128), false, true, 0},
	{networks, "mlp 3, weights", size(10, 128, 128), true, false, 1},
	{networks, "mlp 3, input", size(128, 128, 10), false, false, 0},
	{networks, "mlp 2, weights", size(128, 128, 128), true, false, 1},
	{networks, "mlp 2, input", size(128, 128, 128), false, false, 0},
	{networks, "mlp 1, weights", size(128, 784, 128), true, false, 1},
	{networks, "convnet 5, forward", size(128, 10, 192), false, true, 0},
	{networks, "convnet 5, weights", size(10, 192, 128), true, false, 1},
	{networks, "convnet 5, input", size(128, 192, 10), false, false, 0},

	{small, "one row", size(1, 128, 784), false, true, 0},
	{small, "one row", size(1, 512, 512), false, false, 0},
	{small, "3 rows", size(3, 128, 784), false, true, 0},
	{small, "8 rows", size(8, 128, 784), false, true, 0},
	{small, "16 rows", size(16, 128, 784), false, true, 0},
	{small, "32 rows", size(32, 128, 784), false, true, 0},
	{small, "512 rows", size(512, 128, 784), false, true, 0},
	{small, "17 columns", size(512, 17, 96), false, true, 0},
	{small, "convolution", size(32, 676, 9), false, false, 0},
	{small, "convolution", size(64, 576, 288), false, false, 0},
	{small, "scores", size(64, 64, 32), false, true, 0},
	{small, "attention", size(64, 32, 64), false, false, 0},
	{small, "attention", size(64, 32, 64), true, false, 1},
	{small, "wide", size(384, 1536, 384), false, true, 0},
	{small, "odd", size(172, 289, 383), false, true, 0},
}

// pick returns the shapes of the named groups.
func pick(list string) (chosen []shape) {
	names := strings.Split(list, ",")
	for _, s := range shapes {
		if list == "all" || slices.Contains(names, s.group) {
			chosen = append(chosen, s)
		}
	}
	return chosen
}

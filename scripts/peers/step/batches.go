package main

import (
	"encoding/binary"
	"fmt"
	"os"

	"github.com/ringtrain/ringtrain/nn/cpu"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// Every program trains on count batches, again and again: rows of ringtrain's digits,
// which are in memory before the clock starts. step.py has the same numbers.
const (
	rows     = 128
	side     = 28
	features = side * side
	classes  = 10
	count    = 64
)

// batches is the first part of a file: all pixels, from 0 to 1, as little-endian
// float32, then all labels as int32. The second part has the initial weights of each
// model as float32, parameter by parameter in ringtrain's order, which is PyTorch's
// too. Programs in Go compute the weights and do not read that part.
type batches struct {
	x      []float32 // count*rows*features
	labels []int32   // count*rows
}

// batch returns the i-th batch.
func (b *batches) batch(i int) (x []float32, labels []int32) {
	return b.x[i*rows*features:][:rows*features], b.labels[i*rows:][:rows]
}

func newBatches() *batches {
	return &batches{make([]float32, count*rows*features), make([]int32, count*rows)}
}

// writeBatches draws the digits, which takes some seconds, and writes the file.
func writeBatches(name string) error {
	drawn, _ := data.Generate(data.DigitsOptions{Train: count * rows, Test: 1, Side: side})
	b := newBatches()
	all := make([]int32, count*rows)
	for i := range all {
		all[i] = int32(i)
	}
	if err := drawn.Gather(all, b.x, b.labels); err != nil {
		return err
	}
	parts := []any{b.x, b.labels}
	be := cpu.New(cpu.Options{})
	defer be.Close()
	for _, name := range modelNames {
		m, _ := modelNamed(name)
		net, err := m.initial(be)
		if err != nil {
			return err
		}
		for _, q := range net.Params().List {
			parts = append(parts, q.Values.Float32s())
		}
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	for _, part := range parts {
		if err := binary.Write(f, binary.LittleEndian, part); err != nil {
			_ = f.Close() // the first error counts
			return err
		}
	}
	return f.Close()
}

func readBatches(name string) (*batches, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := newBatches()
	for _, part := range []any{b.x, b.labels} {
		if err := binary.Read(f, binary.LittleEndian, part); err != nil {
			return nil, fmt.Errorf("%s: %w; make it with step batches", name, err)
		}
	}
	return b, nil
}

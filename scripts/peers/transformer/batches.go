package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"os"

	"github.com/ringtrain/ringtrain/trainer/data"
)

// holdout is the fraction of a text that ringtrain holds out by default.
const holdout = .1

// A shape says how a text is divided.
type shape struct {
	context int // characters of a row
	rows    int // of a step
	steps   int
}

// writeBatches writes int32 numbers in little-endian order: the number of ids, the
// context and the number of steps; then for each step the number of rows, and context+1
// ids of each; then the held-out rows in the same form. One worker with seed 0 takes these
// rows in these steps.
func writeBatches(text string, s shape, file string) error {
	info, err := data.ScanText(text)
	if err != nil {
		return err
	}
	chars := info.Chars - int(math.Round(holdout*float64(info.Chars)))
	v, err := info.Vocabulary(chars)
	if err != nil {
		return err
	}
	ids, err := info.IDs(context.Background(), v)
	if err != nil {
		return err
	}
	train := &data.Text{IDs: ids[:chars], Context: s.context}
	held := &data.Text{IDs: ids[chars:], Context: s.context}
	sampler, err := data.NewSampler(train.Rows(), s.rows, 0, 1, 0)
	if err != nil {
		return err
	}
	words := []int32{int32(v.Len()), int32(s.context), int32(s.steps)}
	for step := range s.steps {
		rows, _ := sampler.Step(step)
		words = appendRows(words, train, rows)
	}
	words = appendRows(words, held, data.Range(nil, 0, held.Rows()))
	var b bytes.Buffer
	if err := binary.Write(&b, binary.LittleEndian, words); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o600)
}

func appendRows(words []int32, t *data.Text, rows []int32) []int32 {
	words = append(words, int32(len(rows)))
	for _, r := range rows {
		at := int(r) * t.Context
		words = append(words, t.IDs[at:at+t.Context+1]...)
	}
	return words
}

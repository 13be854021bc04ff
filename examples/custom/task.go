package main

import (
	"context"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/catalog"
)

// pointData is what datasets of this task have in common.
type pointData interface {
	catalog.Dataset
	open() (catalog.Table[points], error)
}

// curveTask is the task of fitting a curve to points.
func curveTask(how nn.ValueLoss) catalog.Task {
	return catalog.NewTask(catalog.Definition[pointData, points]{
		Name:  "curve.v1",
		What:  "points",
		Shape: func(pointData) (in, out []int) { return []int{1}, []int{1} },
		Model: func(from catalog.Blueprint) (catalog.Model[points], error) { return newCurve(from, how) },
		Blank: newPoints,
		Open:  func(_ context.Context, d pointData) (catalog.Table[points], error) { return d.open() },
		Measures: []trainer.Measure{{Name: "mae", Lower: true, Of: func(c nn.Counts) float64 {
			return c[countAbsolute] / max(c[nn.CountRows], 1)
		}}},
	})
}

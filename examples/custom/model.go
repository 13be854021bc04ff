package main

import (
	"fmt"
	"math"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer/catalog"
)

// A points is the batch of this task: times (rows, 1) and, for learning, a target each.
type points struct {
	t, y nn.Tensor
}

// Rows implements trainer.Batch.
func (b points) Rows() int { return b.t.Rows() }

// newPoints returns memory for points.
func newPoints(b nn.Backend, _, _ []int, rows int) points {
	column := func() nn.Tensor { return nn.Tensor{Shape: []int{rows, 1}, Data: b.Alloc(rows)} }
	return points{t: column(), y: column()}
}

// A curve is the model: layers from times to values, and a loss.
type curve struct {
	layer   nn.Layer
	params  *nn.Params
	loss    nn.ValueLoss
	learned nn.Buffer // 1 element, from the last Learn
	sums    nn.Buffer // loss and absolute errors, from the last Score
}

// countAbsolute is the sum of absolute errors in nn.Counts.
const countAbsolute = "absolute"

func newCurve(from catalog.Blueprint, how nn.ValueLoss) (*curve, error) {
	params, err := from.Params()
	if err != nil {
		return nil, err
	}
	b := from.Backend
	return &curve{layer: from.Layer, params: params, loss: how, learned: b.Alloc(1), sums: b.Alloc(2)}, nil
}

// Params implements nn.Model.
func (m *curve) Params() *nn.Params { return m.params }

// CountNames implements nn.Model.
func (m *curve) CountNames() []string { return []string{nn.CountRows, nn.CountLoss, countAbsolute} }

// Learn implements nn.Model; weight is the number of points, which may be 0.
func (m *curve) Learn(p *nn.Pass, batch points) (nn.Buffer, int, error) {
	b := p.Backend
	b.Recycle()
	b.Zero(m.learned)
	if batch.Rows() > 0 {
		y, back := m.layer.Forward(p, batch.t)
		d := nn.Tensor{Shape: y.Shape, Data: b.Temp(y.Data.Len())}
		m.loss.OfValues(b, d.Data, m.learned, y.Data, batch.y.Data)
		back(d)
	}
	if p.Final != nil {
		p.Final(0)
	}
	return m.learned, batch.Rows(), nil
}

// Score implements nn.Model.
func (m *curve) Score(p *nn.Pass, batch points, c nn.Counts) error {
	if batch.Rows() == 0 {
		return nil
	}
	b := p.Backend
	b.Recycle()
	b.Zero(m.sums)
	y, _ := m.layer.Forward(&nn.Pass{Backend: b}, batch.t)
	m.loss.OfValues(b, nn.Buffer{}, m.sums.Slice(0, 1), y.Data, batch.y.Data)
	addAbsolute(b, m.sums.Slice(1, 2), y.Data, batch.y.Data)
	var sums [2]float32
	b.Read(sums[:], m.sums)
	c[nn.CountRows] += float64(batch.Rows())
	c[nn.CountLoss] += float64(sums[0])
	c[countAbsolute] += float64(sums[1])
	return nil
}

// Predict implements catalog.Model. The fields are t and y.
func (m *curve) Predict(p *nn.Pass, batch points) ([]catalog.Prediction, error) {
	n := batch.Rows()
	t, y := make([]float32, n), make([]float32, n)
	p.Backend.Recycle()
	values, _ := m.layer.Forward(p, batch.t)
	p.Backend.Read(t, batch.t.Data)
	p.Backend.Read(y, values.Data)
	all := make([]catalog.Prediction, n)
	for i := range all {
		if math.IsNaN(float64(y[i])) || math.IsInf(float64(y[i]), 0) {
			return nil, fmt.Errorf("the value at %v is not finite: the weights are too large to compute with", t[i])
		}
		all[i] = catalog.Prediction{
			{Name: "t", Value: t[i], Text: fmt.Sprintf("%+.4f", t[i])},
			{Name: "y", Value: y[i], Text: fmt.Sprintf("%+.4f", y[i])},
		}
	}
	return all, nil
}

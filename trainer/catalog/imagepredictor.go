package catalog

import (
	"context"
	"fmt"
	"iter"
	"strconv"

	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// Predictor implements Examples.
func (e *imageExamples) Predictor(b nn.Backend) (Predictor, error) {
	m, err := e.model(b, 0)
	return &imagePredictor{model: m, images: e.source, features: e.features}, err
}

// each returns the images of a set.
func each(m *data.Images) iter.Seq2[InputImage, error] {
	return func(yield func(InputImage, error) bool) {
		pixels := make([]float32, m.Features())
		for row := range m.Rows {
			err := m.Gather([]int32{int32(row)}, pixels, nil)
			if !yield(InputImage{Pixels: pixels}, err) || err != nil {
				return
			}
		}
	}
}

// An imagePredictor finds the classes of images.
type imagePredictor struct {
	model    *nn.Classifier
	images   iter.Seq2[InputImage, error]
	features int
}

// Params implements Predictor.
func (p *imagePredictor) Params() *nn.Params { return p.model.Params() }

// All implements Predictor. The fields are row, class and probability, and file if each
// file is one image.
func (p *imagePredictor) All(ctx context.Context) iter.Seq2[Prediction, error] {
	return func(yield func(Prediction, error) bool) {
		b := imageBatch{first: 0}
		for image, err := range p.images {
			if err != nil { // the rows before it are intact
				if p.predict(ctx, &b, yield) {
					yield(nil, err)
				}
				return
			}
			b.files, b.pixels = append(b.files, image.File), append(b.pixels, image.Pixels...)
			if len(b.files) == examplesBatch && !p.predict(ctx, &b, yield) {
				return
			}
		}
		p.predict(ctx, &b, yield)
	}
}

// An imageBatch is images that are predicted together.
type imageBatch struct {
	first  int // number of the first row
	files  []string
	pixels []float32
}

// predict yields the predictions of a batch and empties it. It reports whether to
// continue.
func (p *imagePredictor) predict(ctx context.Context, b *imageBatch, yield func(Prediction, error) bool) bool {
	n := len(b.files)
	if n == 0 {
		return true
	}
	probs, err := p.model.Predict(ctx, tensor.New(tensor.WithShape(n, p.features), tensor.WithBacking(b.pixels)))
	if err != nil {
		yield(nil, err)
		return false
	}
	values, classes := probs.Data().([]float32), probs.Shape()[1]
	for i, file := range b.files {
		one, err := classOf(b.first+i, values[i*classes:(i+1)*classes])
		if file != "" && err == nil {
			one = append(one, Field{Name: "file", Value: file, Text: cell(file)})
		}
		if !yield(one, err) || err != nil {
			return false
		}
	}
	b.first, b.files, b.pixels = b.first+n, b.files[:0], b.pixels[:0]
	return true
}

// classOf returns the prediction of the most probable class of a row.
func classOf(row int, probabilities []float32) (Prediction, error) {
	class, most := 0, float32(0)
	for c, p := range probabilities {
		if p > most {
			class, most = c, p
		}
	}
	if most == 0 {
		return nil, fmt.Errorf("row %d has no probability: its numbers or the weights are finite, but too large to compute with", row)
	}
	return Prediction{
		{Name: "row", Value: row, Text: strconv.Itoa(row)},
		{Name: "class", Value: class, Text: strconv.Itoa(class)},
		{Name: "probability", Value: most, Text: fmt.Sprintf("%.4f", most)},
	}, nil
}

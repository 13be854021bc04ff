package catalog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"sync"

	"github.com/ringtrain/ringtrain/nn"
	"github.com/ringtrain/ringtrain/trainer"
	"github.com/ringtrain/ringtrain/trainer/data"
)

// imageTask is the name of imageClassification.
const imageTask = "image_classification.v1"

// imageClassification is the Task of finding the class of an image. A row is the pixels
// of an image as one vector.
type imageClassification struct{ loss nn.ClassLoss }

// Fit implements Task.
func (t imageClassification) Fit(d Dataset, network Network) (Problem, error) {
	images, ok := d.(ImageDataset)
	if !ok {
		return nil, fmt.Errorf("the task %s needs images; data %q has none", imageTask, d.Info().Name)
	}
	c := classifier{network: network, loss: t.loss, features: images.Size().values(), classes: usualClasses}
	return &imageProblem{classifier: c, dataset: images}, checkSmoothing(t.loss, usualClasses)
}

// Stored implements Task.
func (t imageClassification) Stored(notes map[string]string, network Network) (Stored, error) {
	size := ImageSize{Channels: 1}
	if channels, found := notes[noteChannels]; found { // not noted if there is only one
		size.Channels, _ = strconv.Atoi(channels)
	}
	size.Height, _ = strconv.Atoi(notes["height"])
	size.Width, _ = strconv.Atoi(notes["width"])
	classes, _ := strconv.Atoi(notes["classes"])
	if min(size.Channels, size.Height, size.Width, classes) < 1 || max(size.Channels, size.Height, size.Width) > 1<<16 {
		return nil, errors.New("its notes do not describe the images and classes it was trained on")
	}
	c := classifier{network: network, loss: t.loss, features: size.values(), classes: classes}
	return &storedImages{classifier: c, size: size}, nil
}

// noteChannels is the note of images with several channels.
const noteChannels = "channels"

// usualClasses is the number of classes before labels have been read. No layer but the
// last depends on it.
const usualClasses = 10

// A classifier is a network for rows of one length, in a number of classes.
type classifier struct {
	network           Network
	loss              nn.ClassLoss // nil: cross-entropy
	features, classes int
	columns           []nn.ColumnSpan // of a row; nil if it has none
}

// builder returns a Builder that knows the columns.
func (c classifier) builder(seed uint64) *nn.Builder {
	b := nn.NewBuilder(seed)
	b.TakesColumns(c.columns)
	return b
}

// Declare is part of Problem, Rows and Stored.
func (c classifier) Declare() (*nn.Builder, error) {
	l, err := c.network()
	if err != nil {
		return nil, err
	}
	b := c.builder(0)
	return b, nn.DeclareClassifier(l, []int{c.features}, c.classes, b)
}

// model makes the model on b.
func (c classifier) model(b nn.Backend, seed uint64) (*nn.Classifier, error) {
	l, err := c.network()
	if err != nil {
		return nil, err
	}
	m, err := nn.BuildClassifier(b, l, []int{c.features}, c.classes, c.builder(seed))
	if err != nil {
		return nil, err
	}
	m.Loss = c.loss
	return m, nil
}

// Probe is part of Problem.
func (c classifier) Probe(b nn.Backend) (Probe, error) {
	m, err := c.model(b, 0)
	if err != nil {
		return Probe{}, err
	}
	return Probe{Params: m.Params(), Learn: func(p *nn.Pass, rows int) error {
		batch := nn.Batch{X: nn.Tensor{Shape: []int{rows, c.features}, Data: b.Alloc(rows * c.features)}, Labels: b.AllocInts(rows)}
		_, _, err := m.Learn(p, batch)
		return err
	}}, nil
}

// An imageProblem is a network that classifies the images of a dataset.
type imageProblem struct {
	classifier
	dataset ImageDataset
}

// Rows implements Problem.
func (p *imageProblem) Rows() (train, test int) {
	info := p.dataset.Info()
	return info.Train, info.Test
}

// Memory implements Problem.
func (p *imageProblem) Memory() Memory {
	const labelAndPlace = 8 // bytes of a row's label, and of its place in the order of rows
	return Memory{Row: 4 * p.features, Resident: p.dataset.Info().Train * (p.features + labelAndPlace)}
}

// Open implements Problem.
func (p *imageProblem) Open(ctx context.Context) (Rows, error) {
	set, err := p.dataset.Open(ctx)
	if err != nil {
		return nil, err
	}
	rows := newImageRows(p.network, set)
	rows.loss = p.loss
	return rows, nil
}

// imageRows are images in memory.
type imageRows struct {
	classifier
	set *data.Set
	sum func() string // reads all rows once
}

func newImageRows(network Network, set *data.Set) *imageRows {
	return &imageRows{classifier: classifier{network: network, features: set.Train.Features(), classes: set.Train.Classes}, set: set, sum: sync.OnceValue(set.Sum)}
}

// Sum implements Rows.
func (r *imageRows) Sum() string { return r.sum() }

// Notes implements Rows.
func (r *imageRows) Notes() map[string]string {
	train := r.set.Train
	notes := map[string]string{"classes": strconv.Itoa(train.Classes), "height": strconv.Itoa(train.Height), "width": strconv.Itoa(train.Width)}
	if train.Channels > 1 {
		notes[noteChannels] = strconv.Itoa(train.Channels)
	}
	return notes
}

// Task implements Rows.
func (r *imageRows) Task(s Seat) (trainer.Task, error) {
	m, err := r.model(s.Backend, s.Seed)
	if err != nil {
		return nil, err
	}
	train, test := r.set.Train, r.set.Test
	t := &trainer.ModelTask[nn.Batch]{Model: m, Measures: []trainer.Measure{trainer.Accuracy}}
	withTest(t, s, test.Rows, func() data.Stage[nn.Batch] { return test.Stage(s.EvalBatch, s.Backend) })
	return withTraining(t, s, train.Rows,
		func() data.Stage[nn.Batch] { return train.Stage(s.Batch, s.Backend) },
		func(sampler *data.Sampler, b nn.Pacer) *data.Resident[nn.Batch] {
			return train.Resident(s.Batch, sampler, b)
		})
}

// storedImages is a stored model for images.
type storedImages struct {
	classifier
	size ImageSize
}

// Fits implements Stored.
func (s *storedImages) Fits(d Dataset) error {
	if in, ok := d.(ImageInput); ok {
		return s.fitsInput(in)
	}
	images, ok := d.(ImageDataset)
	if !ok {
		return foreignf(ownData, "is for images, but %s has none", d.Info().Name)
	}
	if size := images.Size(); size != s.size {
		return foreignf(ownData, "is for images of %v, but those of %s have %v", s.size, d.Info().Name, size)
	}
	return nil
}

// fitsInput is Fits for images of files.
func (s *storedImages) fitsInput(in ImageInput) error {
	if s.size.Channels > 1 {
		return foreignf(ownData, "is for images of %v, but those of %s have 1 channel", s.size, in.Info().Name)
	}
	err := in.CheckSize(s.size.Height, s.size.Width)
	if size := (*data.SizeError)(nil); errors.As(err, &size) {
		return misfitf("is for images of %v, but those of %s have %s; scale them first", s.size, in.Info().Name, size.Got)
	}
	return err
}

// Open implements Stored.
func (s *storedImages) Open(ctx context.Context, d Dataset) (Examples, error) {
	if in, ok := d.(ImageInput); ok {
		return &imageExamples{classifier: s.classifier, source: in.Images(s.size.Height, s.size.Width)}, nil
	}
	set, err := d.(ImageDataset).Open(ctx)
	if err != nil {
		return nil, err
	}
	if set.Test.Labels != nil && set.Test.Classes > s.classes {
		row := slices.IndexFunc(set.Test.Labels, func(class uint8) bool { return int(class) >= s.classes })
		if row < 0 { // no row has one of the classes that the model does not have
			return nil, foreignf(ownData, "has %d classes, but %s has %d", s.classes, d.Info().Name, set.Test.Classes)
		}
		return nil, foreignf(ownData, "has classes 0 to %d, but row %d of %s has the label %d", s.classes-1, row, d.Info().Name, set.Test.Labels[row])
	}
	return &imageExamples{classifier: s.classifier, images: set.Test, source: each(set.Test)}, nil
}

// imageExamples are images for a stored model.
type imageExamples struct {
	classifier
	images *data.Images // nil if only source has them
	source iter.Seq2[InputImage, error]
}

// examplesBatch is the number of rows of stored models at a time.
const examplesBatch = 256

// Task implements Examples.
func (e *imageExamples) Task(b nn.Backend) (trainer.Task, error) {
	if e.images == nil {
		return nil, errors.New("these images have no labels to compare with")
	}
	m, err := e.model(b, 0)
	if err != nil {
		return nil, err
	}
	test := data.NewPart(e.images.Stage(examplesBatch, b), e.images.Rows, 0, 1, examplesBatch)
	return &trainer.ModelTask[nn.Batch]{Model: m, Test: test, Measures: []trainer.Measure{trainer.Accuracy}}, nil
}

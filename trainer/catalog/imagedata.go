package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringtrain/ringtrain/trainer/data"
)

// An ImageDataset is a Dataset of images with classes. Your own program may register
// others.
type ImageDataset interface {
	Dataset
	// Size returns the shape of the images.
	Size() ImageSize
	// Open reads the images, and generates them first if necessary. A dataset to evaluate
	// or predict has no training images.
	Open(ctx context.Context) (*data.Set, error)
}

// An ImageSize is the shape of images.
type ImageSize struct {
	Channels      int // at least 1
	Height, Width int // pixels
}

// String returns the height and width, as in "28x28", after the channels if there are
// several.
func (s ImageSize) String() string {
	if s.Channels > 1 {
		return fmt.Sprintf("%dx%dx%d", s.Channels, s.Height, s.Width)
	}
	return fmt.Sprintf("%dx%d", s.Height, s.Width)
}

// values returns the number of values in an image.
func (s ImageSize) values() int { return s.Channels * s.Height * s.Width }

// imageData are the built-in kinds of images.
var imageData = []struct {
	name string
	DataKind
}{
	{"digits", DataKind{Usage: "digits", Doc: "generated once on this machine", Train: generatedDigits, Test: func(arg string, _ bool) (Dataset, error) {
		return generatedDigits(arg, Options{})
	}}},
	{"mnist", DataKind{Usage: "mnist:DIR", Doc: "IDX files, plain or .gz", Train: mnist, Test: mnistTest}},
	{"cifar", DataKind{Usage: "cifar:DIR", Doc: "CIFAR-10, binary version", Train: cifar, Test: cifarTest}},
	{"idx", DataKind{Usage: "idx:FILE", Doc: "images without labels in an IDX file", Unlabelled: true, Suffixes: []string{"ubyte", ".idx"},
		Input: imageDecoding{open: data.NewIDXDecoder, check: checkIDX}.input}},
	{"npy", DataKind{Usage: "npy:FILE", Doc: "images without labels in a NumPy array", Unlabelled: true, Suffixes: []string{".npy"},
		Input: imageDecoding{open: data.NewNPYDecoder}.input}},
	{"png", DataKind{Usage: "png:FILE", Doc: "an image, or a directory of them", Unlabelled: true, Suffixes: []string{".png"},
		Input: imageDecoding{open: data.NewPNGDecoder, named: true}.input}},
}

// images is an ImageDataset.
type images struct {
	info Info
	size ImageSize
	open func(ctx context.Context) (*data.Set, error)
}

var _ ImageDataset = (*images)(nil)

// Info implements Dataset.
func (d *images) Info() Info { return d.info }

// Task implements Dataset.
func (d *images) Task() string { return imageTask }

// Size implements ImageDataset.
func (d *images) Size() ImageSize { return d.size }

// Open implements ImageDataset.
func (d *images) Open(ctx context.Context) (*data.Set, error) { return d.open(ctx) }

// newImages returns a dataset that holds a byte for each value and each label.
func newImages(info Info, size ImageSize, open func(ctx context.Context) (*data.Set, error)) *images {
	size.Channels = max(size.Channels, 1)
	info.Bytes = (float64(info.Train) + float64(info.Test)) * (float64(size.values()) + 1)
	return &images{info: info, size: size, open: open}
}

// newTestImages returns a dataset without training images.
func newTestImages(name string, i data.TestInfo, open func() (*data.Images, error)) *images {
	return newImages(Info{Name: name, Test: i.Rows}, ImageSize{i.Channels, i.Height, i.Width}, func(context.Context) (*data.Set, error) {
		test, err := open()
		return &data.Set{Test: test}, err
	})
}

func generatedDigits(arg string, _ Options) (Dataset, error) {
	if arg != "" {
		return nil, fmt.Errorf("unknown data %q; use digits, which takes no argument", "digits:"+arg)
	}
	const train, test, side = 20_000, 4_000, 28
	return newImages(Info{Name: "digits", Train: train, Test: test, Cache: data.DigitsName}, ImageSize{1, side, side}, func(ctx context.Context) (*data.Set, error) {
		cache, err := data.OpenCache()
		if err != nil {
			return nil, err
		}
		return cache.Digits(ctx)
	}), nil
}

func mnist(dir string, _ Options) (Dataset, error) {
	if dir == "" {
		return nil, fmt.Errorf("data %q names no directory; give one with IDX files, as in mnist:DIR", "mnist:")
	}
	i, err := data.Check(dir)
	if err != nil {
		return nil, err
	}
	return newImages(Info{Name: "mnist:" + dir, Train: i.TrainRows, Test: i.TestRows}, ImageSize{i.Channels, i.Height, i.Width}, func(context.Context) (*data.Set, error) {
		return data.OpenMNIST(dir)
	}), nil
}

func mnistTest(dir string, labelled bool) (Dataset, error) {
	if dir == "" {
		return nil, fmt.Errorf("data %q names no directory or file; write mnist:DIR or idx:FILE", "mnist:")
	}
	i, err := data.CheckTest(dir, labelled)
	if err != nil {
		return nil, err
	}
	return newTestImages("mnist:"+dir, i, func() (*data.Images, error) { return data.OpenTest(dir, labelled) }), nil
}

func cifar(dir string, _ Options) (Dataset, error) {
	if dir == "" {
		return nil, errNoCIFAR
	}
	i, err := data.CheckCIFAR(dir)
	if err != nil {
		return nil, err
	}
	return newImages(Info{Name: "cifar:" + dir, Train: i.TrainRows, Test: i.TestRows}, ImageSize{i.Channels, i.Height, i.Width}, func(context.Context) (*data.Set, error) {
		return data.OpenCIFAR(dir)
	}), nil
}

func cifarTest(dir string, _ bool) (Dataset, error) {
	if dir == "" {
		return nil, errNoCIFAR
	}
	i, err := data.CheckCIFARTest(dir)
	if err != nil {
		return nil, err
	}
	return newTestImages("cifar:"+dir, i, func() (*data.Images, error) { return data.OpenCIFARTest(dir) }), nil
}

// errNoCIFAR is the error of the name "cifar:".
var errNoCIFAR = errors.New(`data "cifar:" names no directory; give one with data_batch_1.bin and test_batch.bin, as in cifar:DIR`)

// checkIDX compares the length of an IDX file of images with its header.
func checkIDX(path string) error {
	_, err := data.CheckImages(path)
	return err
}

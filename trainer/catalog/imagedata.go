package catalog

import (
	"context"
	"fmt"

	"github.com/ringtrain/ringtrain/trainer/data"
)

// An ImageDataset is a Dataset of greyscale images with classes. Your own program may
// register others.
type ImageDataset interface {
	Dataset
	// Size returns the height and width of the images.
	Size() (height, width int)
	// Open reads the images, and generates them first if necessary. A dataset to evaluate
	// or predict has no training images.
	Open(ctx context.Context) (*data.Set, error)
}

// imageData are the built-in kinds of images.
var imageData = []struct {
	name string
	DataKind
}{
	{"digits", DataKind{Usage: "digits", Doc: "generated once on this machine", Train: generatedDigits, Test: func(arg string, _ bool) (Dataset, error) {
		return generatedDigits(arg, Options{})
	}}},
	{"mnist", DataKind{Usage: "mnist:DIR", Doc: "IDX files, plain or .gz", Train: mnist, Test: mnistTest}},
	{"idx", DataKind{Usage: "idx:FILE", Doc: "images without labels in an IDX file", Unlabelled: true, Suffixes: []string{"ubyte", ".idx"},
		Input: imageDecoding{open: data.NewIDXDecoder, check: checkIDX}.input}},
	{"npy", DataKind{Usage: "npy:FILE", Doc: "images without labels in a NumPy array", Unlabelled: true, Suffixes: []string{".npy"},
		Input: imageDecoding{open: data.NewNPYDecoder}.input}},
	{"png", DataKind{Usage: "png:FILE", Doc: "an image, or a directory of them", Unlabelled: true, Suffixes: []string{".png"},
		Input: imageDecoding{open: data.NewPNGDecoder, named: true}.input}},
}

// images is an ImageDataset.
type images struct {
	info          Info
	height, width int
	open          func(ctx context.Context) (*data.Set, error)
}

var _ ImageDataset = (*images)(nil)

// Info implements Dataset.
func (d *images) Info() Info { return d.info }

// Task implements Dataset.
func (d *images) Task() string { return imageTask }

// Size implements ImageDataset.
func (d *images) Size() (height, width int) { return d.height, d.width }

// Open implements ImageDataset.
func (d *images) Open(ctx context.Context) (*data.Set, error) { return d.open(ctx) }

// newImages returns a dataset that holds a byte for each pixel and each label.
func newImages(info Info, height, width int, open func(ctx context.Context) (*data.Set, error)) *images {
	info.Bytes = (float64(info.Train) + float64(info.Test)) * (float64(height*width) + 1)
	return &images{info: info, height: height, width: width, open: open}
}

// newTestImages returns a dataset without training images.
func newTestImages(name string, i data.TestInfo, open func() (*data.Images, error)) *images {
	return newImages(Info{Name: name, Test: i.Rows}, i.Height, i.Width, func(context.Context) (*data.Set, error) {
		test, err := open()
		return &data.Set{Test: test}, err
	})
}

func generatedDigits(arg string, _ Options) (Dataset, error) {
	if arg != "" {
		return nil, fmt.Errorf("unknown data %q; use digits, which takes no argument", "digits:"+arg)
	}
	const train, test, side = 20_000, 4_000, 28
	return newImages(Info{Name: "digits", Train: train, Test: test, Cache: data.DigitsName}, side, side, func(ctx context.Context) (*data.Set, error) {
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
	return newImages(Info{Name: "mnist:" + dir, Train: i.TrainRows, Test: i.TestRows}, i.Height, i.Width, func(context.Context) (*data.Set, error) {
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

// checkIDX compares the length of an IDX file of images with its header.
func checkIDX(path string) error {
	_, err := data.CheckImages(path)
	return err
}

package data

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
)

// The name stems of the four files in an MNIST directory. Every set of the family (Fashion-MNIST,
// KMNIST, EMNIST's mnist split) uses them.
const (
	trainImages = "train-images"
	trainLabels = "train-labels"
	testImages  = "t10k-images"
	testLabels  = "t10k-labels"
)

var stems = []string{trainImages, trainLabels, testImages, testLabels}

// Info is the information in the headers of a set.
type Info struct {
	TrainRows, TestRows int
	Channels            int // 0 means 1
	Height, Width       int // pixels
}

// OpenMNIST reads the four IDX files of an MNIST directory: train-images-idx3-ubyte,
// train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte. It also accepts these
// variations of the names:
//
//   - a ".gz" suffix
//   - a dot, as in train-images.idx3-ubyte
//   - "test" instead of "t10k"
//   - the name of a dataset as a prefix, as in emnist-letters-test-images-idx3-ubyte.gz, if the
//     directory contains only one dataset
//
// Both parts get the same Classes: one more than the highest label, at least ten.
func OpenMNIST(dir string) (*Set, error) {
	files, err := findMNIST(dir, stems)
	if err != nil {
		return nil, err
	}
	train, err := readPart(files[trainImages], files[trainLabels])
	if err != nil {
		return nil, err
	}
	test, err := readPart(files[testImages], files[testLabels])
	if err != nil {
		return nil, err
	}
	if train.Height != test.Height || train.Width != test.Width {
		return nil, sizeMismatch(files, []int{train.Height, train.Width}, []int{test.Height, test.Width})
	}
	train.Classes = labelClasses(train.Labels, test.Labels)
	test.Classes = train.Classes
	return &Set{Train: train, Test: test}, nil
}

// Check reports cheaply whether OpenMNIST would accept a directory: all files exist, and their
// headers agree with each other and with the lengths of the files. It reads headers and, for
// compressed files, the length at the end.
func Check(dir string) (Info, error) {
	files, err := findMNIST(dir, stems)
	if err != nil {
		return Info{}, err
	}
	train, err := checkPart(files[trainImages], files[trainLabels])
	if err != nil {
		return Info{}, err
	}
	test, err := checkPart(files[testImages], files[testLabels])
	if err != nil {
		return Info{}, err
	}
	if train[1] != test[1] || train[2] != test[2] {
		return Info{}, sizeMismatch(files, train[1:], test[1:])
	}
	return Info{TrainRows: train[0], TestRows: test[0], Height: train[1], Width: train[2]}, nil
}

// WriteMNIST writes a set as the four compressed IDX files that OpenMNIST reads, each atomically.
// It creates the directory if needed. Images must have one channel.
func WriteMNIST(dir string, train, test *Images) error { return writeMNIST(dir, ".gz", train, test) }

// writeMNIST is WriteMNIST for files with a suffix, ".gz" or none.
func writeMNIST(dir, suffix string, train, test *Images) error {
	if n := max(train.Channels, test.Channels); n > 1 {
		return fmt.Errorf("data: images in the files of MNIST must have 1 channel, not %d", n)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, x := range idxFiles(train, test) {
		if err := WriteIDX(filepath.Join(dir, name+suffix), x); err != nil {
			return err
		}
	}
	return nil
}

// idxFiles yields the names, without a suffix, and the contents of the four files of a set.
func idxFiles(train, test *Images) iter.Seq2[string, *IDX] {
	return func(yield func(string, *IDX) bool) {
		for _, part := range []struct {
			images, labels string
			m              *Images
		}{{trainImages, trainLabels, train}, {testImages, testLabels, test}} {
			images := &IDX{Dims: []int{part.m.Rows, part.m.Height, part.m.Width}, Data: part.m.Pixels}
			labels := &IDX{Dims: []int{part.m.Rows}, Data: part.m.Labels}
			if !yield(part.images+"-idx3-ubyte", images) || !yield(part.labels+"-idx1-ubyte", labels) {
				return
			}
		}
	}
}

// readPart reads a file of images and the matching file of labels.
func readPart(images, labels string) (*Images, error) {
	x, err := ReadIDX(images)
	if err != nil {
		return nil, err
	}
	y, err := ReadIDX(labels)
	if err != nil {
		return nil, err
	}
	if err := partDims(images, labels, x.Dims, y.Dims); err != nil {
		return nil, err
	}
	return &Images{Rows: x.Dims[0], Height: x.Dims[1], Width: x.Dims[2], Pixels: x.Data, Labels: y.Data}, nil
}

// checkPart is readPart for headers only. It returns the images' dimensions.
func checkPart(images, labels string) ([]int, error) {
	x, err := checkIDX(images)
	if err != nil {
		return nil, err
	}
	y, err := checkIDX(labels)
	if err != nil {
		return nil, err
	}
	return x, partDims(images, labels, x, y)
}

// partDims checks that the dimensions of images and labels fit together.
func partDims(images, labels string, x, y []int) error {
	if err := imageDims(images, x); err != nil {
		return err
	}
	switch {
	case len(y) != 1:
		return fmt.Errorf("%s: labels must have 1 dimension (rows), but this file has dimensions %v", labels, y)
	case x[0] != y[0]:
		return fmt.Errorf("%s holds %d images but %s holds %d labels; they belong to different sets", images, x[0], labels, y[0])
	}
	return nil
}

func sizeMismatch(files map[string]string, train, test []int) error {
	return fmt.Errorf("%s holds images of %v pixels but %s of %v; they belong to different sets",
		files[trainImages], train, files[testImages], test)
}

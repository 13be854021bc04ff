package data

import (
	"fmt"
	"os"
	"path/filepath"
)

// The four files of an MNIST directory, by the stems and dimensions that every
// set of the family (Fashion-MNIST, KMNIST, EMNIST's mnist split) uses.
const (
	trainImages = "train-images"
	trainLabels = "train-labels"
	testImages  = "t10k-images"
	testLabels  = "t10k-labels"
)

var stems = []string{trainImages, trainLabels, testImages, testLabels}

// Info is what the headers of a set say.
type Info struct {
	TrainRows, TestRows int
	Height, Width       int // pixels
}

// OpenMNIST reads the four IDX files of an MNIST directory: train-images-idx3-ubyte, train-labels-idx1-ubyte,
// t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, each with or without
// ".gz", also in the spelling train-images.idx3-ubyte, with "test" for "t10k", and with the
// name of a set before it, as in emnist-letters-test-images-idx3-ubyte.gz, if the directory
// has one set alone. Classes of both parts is one more than the highest label, ten at least.
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

// Check says cheaply whether OpenMNIST would accept a directory: all files
// are there, their headers fit each other and the files' lengths. It reads
// headers and, of compressed files, the length at the end.
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

// WriteMNIST writes a set as the four compressed IDX files that OpenMNIST reads,
// each of them atomically. The directory is made if need be.
func WriteMNIST(dir string, train, test *Images) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, part := range []struct {
		images, labels string
		m              *Images
	}{{trainImages, trainLabels, train}, {testImages, testLabels, test}} {
		x := &IDX{Dims: []int{part.m.Rows, part.m.Height, part.m.Width}, Data: part.m.Pixels}
		if err := WriteIDX(filepath.Join(dir, part.images+"-idx3-ubyte.gz"), x); err != nil {
			return err
		}
		x = &IDX{Dims: []int{part.m.Rows}, Data: part.m.Labels}
		if err := WriteIDX(filepath.Join(dir, part.labels+"-idx1-ubyte.gz"), x); err != nil {
			return err
		}
	}
	return nil
}

// readPart reads a file of images and its file of labels.
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

// checkPart is readPart on the headers alone. It returns the images' dimensions.
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

// partDims checks that the dimensions of images and labels are those of one set.
func partDims(images, labels string, x, y []int) error {
	if err := imageDims(images, x); err != nil {
		return err
	}
	switch {
	case len(y) != 1:
		return fmt.Errorf("%s: labels have 1 dimension (rows), this file has %v", labels, y)
	case x[0] != y[0]:
		return fmt.Errorf("%s holds %d images but %s holds %d labels: they are not of one set", images, x[0], labels, y[0])
	}
	return nil
}

func sizeMismatch(files map[string]string, train, test []int) error {
	return fmt.Errorf("%s holds images of %v pixels but %s of %v: they are not of one set",
		files[trainImages], train, files[testImages], test)
}

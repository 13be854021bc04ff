package data

import (
	"fmt"
	"os"
)

// TestInfo is the information in the headers of test images.
type TestInfo struct {
	Rows          int
	Channels      int // 0 means 1
	Height, Width int // pixels
}

// testFiles finds the test images of an MNIST directory and, if labelled is set, their
// labels. It does not need the training files.
func testFiles(dir string, labelled bool) (images, labels string, err error) {
	needed := []string{testImages}
	if labelled {
		needed = append(needed, testLabels)
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return "", "", fmt.Errorf("%s is a file, not an MNIST directory; to predict from a file of images use idx:%s", dir, dir)
	}
	files, err := findMNIST(dir, needed)
	if err != nil {
		return "", "", err
	}
	return files[testImages], files[testLabels], nil
}

// OpenTest reads the test images of an MNIST directory, with the file names that
// OpenMNIST accepts, and their labels if labelled is set. It reads no training files.
// Classes is one more than the highest label, or 0 without labels.
func OpenTest(dir string, labelled bool) (*Images, error) {
	images, labels, err := testFiles(dir, labelled)
	if err != nil {
		return nil, err
	}
	if !labelled {
		return OpenImages(images)
	}
	m, err := readPart(images, labels)
	if err != nil {
		return nil, err
	}
	for _, l := range m.Labels {
		m.Classes = max(m.Classes, int(l)+1)
	}
	return m, nil
}

// CheckTest reports cheaply whether OpenTest would accept a directory, like Check.
func CheckTest(dir string, labelled bool) (TestInfo, error) {
	images, labels, err := testFiles(dir, labelled)
	if err != nil {
		return TestInfo{}, err
	}
	if !labelled {
		return CheckImages(images)
	}
	dims, err := checkPart(images, labels)
	if err != nil {
		return TestInfo{}, err
	}
	return TestInfo{Rows: dims[0], Height: dims[1], Width: dims[2]}, nil
}

// OpenImages reads an IDX file of images, (rows, height, width), without labels.
func OpenImages(path string) (*Images, error) {
	x, err := ReadIDX(path)
	if err != nil {
		return nil, err
	}
	if err := imageDims(path, x.Dims); err != nil {
		return nil, err
	}
	return &Images{Rows: x.Dims[0], Height: x.Dims[1], Width: x.Dims[2], Pixels: x.Data}, nil
}

// CheckImages reports cheaply whether OpenImages would accept a file, like Check.
func CheckImages(path string) (TestInfo, error) {
	dims, err := checkIDX(path)
	if err == nil {
		err = imageDims(path, dims)
	}
	if err != nil {
		return TestInfo{}, err
	}
	return TestInfo{Rows: dims[0], Height: dims[1], Width: dims[2]}, nil
}

// imageDims checks that the dimensions of a file are those of images.
func imageDims(path string, x []int) error {
	if len(x) != 3 {
		return fmt.Errorf("%s: images must have 3 dimensions (rows, height, width), but this file has dimensions %v", path, x)
	}
	return nil
}

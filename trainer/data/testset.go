package data

import (
	"fmt"
	"os"
)

// TestInfo is what the headers of test images say.
type TestInfo struct {
	Rows          int
	Height, Width int // pixels
}

// testFiles finds the test images of an MNIST directory and, if they are wanted,
// their labels. The training files may be missing.
func testFiles(dir string, labelled bool) (images, labels string, err error) {
	needed := []string{testImages}
	if labelled {
		needed = append(needed, testLabels)
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return "", "", fmt.Errorf("an MNIST directory is expected, %s is a file; predict reads a file of images as idx:%s", dir, dir)
	}
	files, err := findMNIST(dir, needed)
	if err != nil {
		return "", "", err
	}
	return files[testImages], files[testLabels], nil
}

// OpenTest reads the test images of an MNIST directory, by the names that
// OpenMNIST knows, and their labels if these are wanted. It reads no training
// files. Classes is one more than the highest label, or 0 without labels.
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

// CheckTest says cheaply whether OpenTest would accept a directory, as Check does.
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

// OpenImages reads an IDX file of images, (rows, height, width), which have no
// labels.
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

// CheckImages says cheaply whether OpenImages would accept a file, as Check does.
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
		return fmt.Errorf("%s: images have 3 dimensions (rows, height, width), this file has %v", path, x)
	}
	return nil
}

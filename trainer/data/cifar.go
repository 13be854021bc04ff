package data

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// The files of the binary version of CIFAR-10 (Krizhevsky, 2009).
var (
	cifarTrain = []string{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"}
	cifarTest  = []string{"test_batch.bin"}
)

// A file is records of a label and an image.
const (
	cifarChannels, cifarSide = 3, 32 // planes of red, green and blue
	cifarClasses             = 10
	cifarRecord              = 1 + cifarChannels*cifarSide*cifarSide // bytes
)

// OpenCIFAR reads the six files of the binary version of CIFAR-10: data_batch_1.bin to
// data_batch_5.bin and test_batch.bin. A file may have any number of records, at least one.
func OpenCIFAR(dir string) (*Set, error) {
	train, err := readCIFAR(dir, cifarTrain)
	if err != nil {
		return nil, err
	}
	test, err := readCIFAR(dir, cifarTest)
	if err != nil {
		return nil, err
	}
	return &Set{Train: train, Test: test}, nil
}

// OpenCIFARTest is OpenCIFAR for the test images alone. It reads no training files.
func OpenCIFARTest(dir string) (*Images, error) { return readCIFAR(dir, cifarTest) }

// CheckCIFAR reports cheaply whether OpenCIFAR would accept a directory, except for labels:
// it looks only at the sizes of the files.
func CheckCIFAR(dir string) (Info, error) {
	train, err := cifarRows(dir, cifarTrain)
	if err != nil {
		return Info{}, err
	}
	test, err := CheckCIFARTest(dir)
	return Info{TrainRows: train, TestRows: test.Rows, Channels: cifarChannels, Height: cifarSide, Width: cifarSide}, err
}

// CheckCIFARTest is CheckCIFAR for OpenCIFARTest.
func CheckCIFARTest(dir string) (TestInfo, error) {
	rows, err := cifarRows(dir, cifarTest)
	return TestInfo{Rows: rows, Channels: cifarChannels, Height: cifarSide, Width: cifarSide}, err
}

// cifarRows returns the number of records in some files.
func cifarRows(dir string, names []string) (rows int, err error) {
	for _, name := range names {
		n, err := cifarRowsOf(filepath.Join(dir, name))
		if err != nil {
			return 0, err
		}
		rows += n
	}
	return rows, nil
}

// cifarRowsOf returns the number of records in a file.
func cifarRowsOf(path string) (int, error) {
	info, err := os.Stat(path) // first, because opening a pipe would wait for a writer
	switch {
	case errors.Is(err, os.ErrNotExist):
		return 0, fmt.Errorf("%w; the directory must have the binary version of CIFAR-10, not the one for Python or Matlab", err)
	case err != nil:
		return 0, err
	case !info.Mode().IsRegular():
		return 0, fmt.Errorf("%s: expected a file of CIFAR-10, but this is a %s", path, kindOf(info))
	case info.Size() == 0 || info.Size()%cifarRecord != 0:
		return 0, fmt.Errorf("%s: the file has %d bytes, but must have a multiple of %d: a label and %dx%dx%d pixels per record", path, info.Size(), cifarRecord, cifarChannels, cifarSide, cifarSide)
	}
	return int(info.Size() / cifarRecord), nil
}

// readCIFAR reads some files.
func readCIFAR(dir string, names []string) (*Images, error) {
	rows, err := cifarRows(dir, names)
	if err != nil {
		return nil, err
	}
	m := &Images{Channels: cifarChannels, Height: cifarSide, Width: cifarSide, Classes: cifarClasses,
		Pixels: make([]byte, 0, rows*(cifarRecord-1)), Labels: make([]byte, 0, rows)}
	for _, name := range names {
		if err := m.addCIFAR(filepath.Join(dir, name), rows-m.Rows); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// addCIFAR adds the records of a file, at most room.
func (m *Images) addCIFAR(path string, room int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := m.decodeCIFAR(io.LimitReader(f, int64(room)*cifarRecord)); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// decodeCIFAR adds all records of r.
func (m *Images) decodeCIFAR(r io.Reader) error {
	record := make([]byte, cifarRecord)
	for n := 0; ; n++ {
		switch _, err := io.ReadFull(r, record); {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("%w: in record %d", short(err), n)
		case record[0] >= cifarClasses:
			return fmt.Errorf("record %d has the label %d, but CIFAR-10 has classes 0 to %d", n, record[0], cifarClasses-1)
		}
		m.Labels, m.Pixels = append(m.Labels, record[0]), append(m.Pixels, record[1:]...)
		m.Rows++
	}
}

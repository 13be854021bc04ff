package data

import (
	"errors"
	"fmt"
)

// Images is a set of images of one size, with a class label for each.
type Images struct {
	Rows     int // number of images
	Channels int // planes of an image, such as red, green and blue; 0 means 1
	Height   int // pixels from top to bottom
	Width    int // pixels from left to right
	Classes  int // labels are 0 .. Classes-1

	Pixels []byte // [Rows, Channels, Height, Width], row-major; with one channel, 0 is paper and 255 is ink
	Labels []byte // [Rows]; nil if the images are unlabelled
}

// Set is the data of a training run: rows to train on and rows to evaluate on.
type Set struct {
	Train, Test *Images
}

// Features returns the number of values in an image, Channels*Height*Width.
func (m *Images) Features() int { return max(m.Channels, 1) * m.Height * m.Width }

// Image returns the pixels of row i, [Channels, Height, Width]. It aliases m.Pixels.
func (m *Images) Image(i int) []byte {
	n := m.Features()
	return m.Pixels[i*n : (i+1)*n : (i+1)*n]
}

// Gather copies the given rows into a batch: x, [len(rows), Features()] row-major,
// receives the pixels divided by 255, and labels, [len(rows)], the classes. Like
// ml_datasets.mnist of the Thinc examples, it does not subtract a mean or divide by a
// deviation. Slices may be longer than needed; the rest is not changed. With nil labels
// it copies only the images. If a slice is too short or a row does not exist, it fails
// without writing anything.
func (m *Images) Gather(rows []int32, x []float32, labels []int32) error {
	n := m.Features()
	if labels != nil && m.Labels == nil {
		return errors.New("data: cannot gather labels from a set without labels")
	}
	if len(x) < len(rows)*n || labels != nil && len(labels) < len(rows) {
		return fmt.Errorf("data: a batch of %d rows needs %d values and %d labels, but there is room for %d and %d",
			len(rows), len(rows)*n, len(rows), len(x), len(labels))
	}
	for _, r := range rows {
		if r < 0 || int(r) >= m.Rows {
			return fmt.Errorf("data: there is no row %d; the set has rows 0 to %d", r, m.Rows-1)
		}
	}
	for i, r := range rows {
		dst := x[i*n : (i+1)*n]
		for j, p := range m.Image(int(r))[:len(dst)] {
			dst[j] = float32(p) / 255
		}
		if labels != nil {
			labels[i] = int32(m.Labels[r])
		}
	}
	return nil
}

// labelClasses returns the number of classes in some label sets: one more than the
// highest label, and at least ten, so that a small excerpt of a digit set still gets a
// model with ten outputs.
func labelClasses(sets ...[]byte) int {
	classes := 10
	for _, labels := range sets {
		for _, l := range labels {
			classes = max(classes, int(l)+1)
		}
	}
	return classes
}

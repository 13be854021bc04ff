package data

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
)

// An ImageDecoder reads unlabelled images one after the other, so that they need not fit
// into memory. It may have read the header of its stream.
type ImageDecoder interface {
	// Fits returns an error unless the images have this size, as far as is known.
	Fits(height, width int) error
	// Next reads an image into dst, [height, width] row-major; 0 is paper, 1 is ink. It
	// returns io.EOF after the last one. Values are finite. height and width are the same
	// on every call.
	Next(dst []float32, height, width int) error
}

// A SizeError says that images do not have the size that a model needs.
type SizeError struct {
	Got           string // such as "12x12"
	Height, Width int    // needed
}

// Error implements error.
func (e *SizeError) Error() string {
	return fmt.Sprintf("it has images of %s, but the model is for %dx%d", e.Got, e.Height, e.Width)
}

// checkSize compares the size of images with the size that is needed.
func checkSize(gotHeight, gotWidth, height, width int) error {
	if gotHeight == height && gotWidth == width {
		return nil
	}
	return &SizeError{Got: fmt.Sprintf("%dx%d", gotHeight, gotWidth), Height: height, Width: width}
}

// Decompress returns a reader of the content of r, which may be compressed by gzip. It
// looks at the first bytes, not at a name.
func Decompress(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	magic, err := b.Peek(len(gzipMagic))
	if bytes.Equal(magic, gzipMagic) {
		return newGunzip(b)
	}
	if err != nil && err != io.EOF {
		return nil, err
	}
	return b, nil
}

// idxImages decodes an IDX tensor (rows, height, width).
type idxImages struct {
	r             io.Reader
	height, width int
	row, rows     int
	pixels        []byte
}

// NewIDXDecoder reads the header of an uncompressed IDX tensor of images (rows, height,
// width).
func NewIDXDecoder(r io.Reader) (ImageDecoder, error) {
	dims, _, err := decodeIDXHeader(r)
	if err != nil {
		return nil, err
	}
	if len(dims) != 3 {
		return nil, fmt.Errorf("images must have 3 dimensions (rows, height, width), but it has dimensions %v", dims)
	}
	return &idxImages{r: r, rows: dims[0], height: dims[1], width: dims[2]}, nil
}

// Fits implements ImageDecoder.
func (d *idxImages) Fits(height, width int) error {
	return checkSize(d.height, d.width, height, width)
}

// Next implements ImageDecoder.
func (d *idxImages) Next(dst []float32, height, width int) error {
	if d.row == d.rows {
		return ended(d.r, d.rows)
	}
	if err := d.Fits(height, width); err != nil {
		return err
	}
	if d.pixels == nil {
		d.pixels = make([]byte, height*width)
	}
	if _, err := io.ReadFull(d.r, d.pixels); err != nil {
		return fmt.Errorf("%w: the header promises %d images, but there are %d", short(err), d.rows, d.row)
	}
	d.row++
	for i, p := range d.pixels {
		dst[i] = float32(p) / 255
	}
	return nil
}

// ended returns io.EOF if r is at its end, as it must be after some rows.
func ended(r io.Reader, rows int) error {
	var one [1]byte
	switch _, err := io.ReadFull(r, one[:]); {
	case err == nil:
		return fmt.Errorf("there is more data after the %d rows that the header promises", rows)
	default:
		return err // io.EOF, or what is wrong with the end of a gzip stream
	}
}

// finite returns an error for a pixel that is NaN or infinite.
func finite(pixels []float32) error {
	for i, v := range pixels {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return fmt.Errorf("pixel %d is %v; all pixels must be finite float32", i, v)
		}
	}
	return nil
}

// errEmpty is the error of a stream without content.
var errEmpty = errors.New("it is empty")

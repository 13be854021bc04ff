package catalog

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/ringtrain/ringtrain/trainer/data"
)

// An ImageInput is a Dataset of unlabelled images that are read in order, so that they
// need not fit into memory. Your own program may register other formats of images.
type ImageInput interface {
	Dataset
	// CheckSize returns an error unless the images have this size, as far as is known.
	CheckSize(height, width int) error
	// Images reads images of a size. An error ends them. A stream can be read once.
	Images(height, width int) iter.Seq2[InputImage, error]
}

// An InputImage is an unlabelled image.
type InputImage struct {
	File   string    // where it comes from, if each file is one image; otherwise ""
	Pixels []float32 // [height, width] row-major, usually from 0 to 1; valid until the next image
}

// An imageDecoding reads a format of images.
type imageDecoding struct {
	open  func(r io.Reader) (data.ImageDecoder, error)
	named bool // show the file of each image
	check func(path string) error
}

// imageInput is an ImageInput of a format.
type imageInput struct {
	name string
	imageDecoding
	in    Input
	sized func(height, width int) error // of the first file
}

// input finds images. It reads the header of the first file.
func (d imageDecoding) input(in Input) (Dataset, error) {
	for _, name := range in.Files {
		if err := regular(name); err != nil {
			return nil, err
		}
		if d.check == nil {
			continue
		}
		if err := d.check(name); err != nil {
			return nil, err
		}
	}
	i := &imageInput{imageDecoding: d}
	var err error
	i.in, err = in.First(func(p Part) error {
		i.name = p.Name
		first, err := d.open(p)
		if err != nil {
			return within(p.Name, err)
		}
		i.sized = first.Fits
		return nil
	})
	return i, err
}

// regular returns an error for what cannot be read twice.
func regular(path string) error {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s: expected a file, but this is none; to read a pipe, use %s", path, StreamName)
	}
	return err
}

// Info implements Dataset. The number of rows is not known.
func (i *imageInput) Info() Info { return Info{Name: i.name} }

// Task implements Dataset.
func (i *imageInput) Task() string { return imageTask }

// CheckSize implements ImageInput.
func (i *imageInput) CheckSize(height, width int) error { return i.sized(height, width) }

// Images implements ImageInput.
func (i *imageInput) Images(height, width int) iter.Seq2[InputImage, error] {
	return func(yield func(InputImage, error) bool) {
		pixels := make([]float32, height*width)
		for part, err := range i.in.Parts() {
			if err == nil {
				err = i.part(part, height, width, pixels, yield)
			}
			if err != nil {
				if !errors.Is(err, errStop) {
					yield(InputImage{}, err)
				}
				return
			}
		}
	}
}

// errStop is the error of a consumer that wants no more images.
var errStop = errors.New("stop")

// part yields the images of a file.
func (i *imageInput) part(p Part, height, width int, pixels []float32, yield func(InputImage, error) bool) error {
	d, err := i.open(p)
	if err != nil {
		return within(p.Name, err)
	}
	image := InputImage{Pixels: pixels}
	if i.named {
		image.File = p.Name
	}
	for row := 0; ; row++ {
		var size *data.SizeError
		switch err := d.Next(pixels, height, width); {
		case err == io.EOF:
			return nil
		case errors.As(err, &size):
			return within(p.Name, err)
		case err != nil:
			return fmt.Errorf("%s: row %d: %w", p.Name, row, err)
		case !yield(image, nil):
			return errStop
		}
	}
}

package data

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
)

// pngImages decodes PNG images that follow each other without gaps; usually there is one.
type pngImages struct{ r *bufio.Reader }

// pngHead is the length of a PNG's signature and the start of its first chunk, IHDR, up
// to the width and height.
const (
	pngSignature = "\x89PNG\r\n\x1a\n"
	pngHead      = 24
)

// NewPNGDecoder returns a decoder of PNG images that follow each other without gaps; most
// files have one. Colours become grey as in the JPEG standard: 0.299 red, 0.587 green and
// 0.114 blue, rounded to 8 bits. Transparent pixels are black. As in MNIST, ink is
// white and paper is black.
func NewPNGDecoder(r io.Reader) (ImageDecoder, error) {
	d := &pngImages{r: bufio.NewReader(r)}
	_, _, err := d.size()
	if err == io.EOF {
		err = errEmpty
	}
	return d, err
}

// size returns the size of the next image, or io.EOF if there is none. It reads nothing.
func (d *pngImages) size() (height, width int, err error) {
	head, err := d.r.Peek(pngHead)
	switch {
	case len(head) == 0 && err == io.EOF:
		return 0, 0, io.EOF
	case err != nil && !errors.Is(err, io.EOF):
		return 0, 0, err
	case len(head) < pngHead || string(head[:len(pngSignature)]) != pngSignature || string(head[12:16]) != "IHDR":
		return 0, 0, errors.New("not a PNG image: it has no PNG signature")
	}
	w, h := binary.BigEndian.Uint32(head[16:]), binary.BigEndian.Uint32(head[20:])
	const most = 1 << 24 // per side; more would overflow products on small machines
	if w > most || h > most {
		return 0, 0, fmt.Errorf("a PNG image of %dx%d is too large", h, w)
	}
	return int(h), int(w), nil
}

// Fits implements ImageDecoder. Only the next image is known.
func (d *pngImages) Fits(height, width int) error {
	h, w, err := d.size()
	if err != nil {
		return err
	}
	return checkSize(h, w, height, width)
}

// Next implements ImageDecoder. It checks the size before it takes memory for pixels.
func (d *pngImages) Next(dst []float32, height, width int) error {
	if err := d.Fits(height, width); err != nil {
		return err
	}
	m, err := png.Decode(d.r)
	if err != nil {
		return fmt.Errorf("a damaged PNG image: %w", err)
	}
	grey(dst, m)
	return nil
}

// grey sets dst to the brightness of the pixels, from 0 to 1.
func grey(dst []float32, m image.Image) {
	b := m.Bounds()
	for y := range b.Dy() {
		for x := range b.Dx() {
			red, green, blue, _ := m.At(b.Min.X+x, b.Min.Y+y).RGBA() // 16 bits each
			dst[y*b.Dx()+x] = float32((299*red+587*green+114*blue+257*1000/2)/(257*1000)) / 255
		}
	}
}

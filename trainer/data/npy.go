package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The format is that of numpy.lib.format: "\x93NUMPY", a version (1.0, 2.0 or 3.0), the
// length of the header, the header, which is a Python dict with descr, fortran_order and
// shape, and the elements. We read it ourselves because the libraries we know read whole
// arrays into memory.
const (
	npyMagic = "\x93NUMPY"
	// npyHeader is the largest header. numpy refuses longer ones than 10,000 bytes, too.
	npyHeader = 10_000
)

// npyArray is the header of an array.
type npyArray struct {
	descr   string // such as "<f4"
	fortran bool   // the first index varies fastest
	shape   []int
}

// npyImages decodes an array of images.
type npyImages struct {
	array npyArray
	r     io.Reader
	row   int
	raw   []byte // an image; with Fortran order all images
}

// NewNPYDecoder reads the header of a NumPy array of images: (rows, height, width), (rows,
// height*width), or (height, width) for one image. Elements are uint8, which are divided
// by 255, or float32 or float64 of either byte order, which are the network's input as
// they are. An array in Fortran order is read into memory as a whole.
func NewNPYDecoder(r io.Reader) (ImageDecoder, error) {
	array, err := decodeNPYHeader(r)
	if err != nil {
		return nil, err
	}
	if n := len(array.shape); n != 2 && n != 3 {
		return nil, fmt.Errorf("an array of images has the shape (rows, height, width), (rows, pixels) or (height, width), but it has %v", array.shape)
	}
	if _, err := array.bytes(); err != nil {
		return nil, err
	}
	return &npyImages{array: array, r: r}, nil
}

func decodeNPYHeader(r io.Reader) (npyArray, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err == io.EOF {
		return npyArray{}, errEmpty
	} else if err != nil || string(head[:6]) != npyMagic {
		return npyArray{}, errors.New("not a NumPy file: it does not start with \\x93NUMPY")
	}
	size := make([]byte, 4)
	switch head[6] {
	case 1:
		size = size[:2]
	case 2, 3:
	default:
		return npyArray{}, fmt.Errorf("version %d.%d of the NumPy format is not supported; 1.0, 2.0 and 3.0 are", head[6], head[7])
	}
	if _, err := io.ReadFull(r, size); err != nil {
		return npyArray{}, fmt.Errorf("%w: in the length of the header", short(err))
	}
	n := uint32(binary.LittleEndian.Uint16(size))
	if len(size) == 4 {
		n = binary.LittleEndian.Uint32(size)
	}
	if n > npyHeader {
		return npyArray{}, fmt.Errorf("a header of %d bytes is too long; numpy writes at most %d", n, npyHeader)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return npyArray{}, fmt.Errorf("%w: in the header", short(err))
	}
	return parseNPYHeader(string(text))
}

// npyEntry matches an entry of the header at its start: a key and a string, a bool, or a
// tuple of whole numbers.
var npyEntry = regexp.MustCompile(`^\s*'(descr|fortran_order|shape)'\s*:\s*(?:'([^']*)'|(True|False)|\(([\d\s,]*)\))\s*(?:,|$)`)

// parseNPYHeader reads the dict of a header.
func parseNPYHeader(text string) (npyArray, error) {
	var a npyArray
	body, opened := strings.CutPrefix(strings.TrimSpace(text), "{")
	body, closed := strings.CutSuffix(body, "}")
	seen := map[string]bool{}
	for strings.TrimSpace(body) != "" && opened && closed {
		m := npyEntry.FindStringSubmatch(body)
		if m == nil || seen[m[1]] {
			break
		}
		seen[m[1]] = true
		body = body[len(m[0]):]
		switch m[1] {
		case "descr":
			a.descr = m[2]
		case "fortran_order":
			a.fortran = m[3] == "True"
			seen[m[1]] = m[3] != ""
		case "shape":
			for d := range strings.SplitSeq(m[4], ",") {
				if d = strings.TrimSpace(d); d == "" {
					continue
				}
				n, err := strconv.Atoi(d)
				if err != nil {
					return a, fmt.Errorf("the dimension %s of its shape is not a whole number that fits this machine", d)
				}
				a.shape = append(a.shape, n)
			}
		}
	}
	if strings.TrimSpace(body) != "" || !seen["descr"] || !seen["fortran_order"] || !seen["shape"] {
		return a, fmt.Errorf("its header does not describe an array of numbers: %.100q", text)
	}
	return a, nil
}

// width returns the number of bytes of an element.
func (a npyArray) width() (int, error) {
	switch a.descr {
	case "|u1", "<u1", ">u1":
		return 1, nil
	case "<f4", ">f4":
		return 4, nil
	case "<f8", ">f8":
		return 8, nil
	}
	return 0, fmt.Errorf("elements of type %q are not supported; convert them with .astype to uint8, float32 or float64", a.descr)
}

// bytes returns the length of the elements. Dimensions of 0 are an error.
func (a npyArray) bytes() (int64, error) {
	width, err := a.width()
	if err != nil {
		return 0, err
	}
	return product(append(slices.Clone(a.shape), width))
}

// Fits implements ImageDecoder.
func (d *npyImages) Fits(height, width int) error {
	_, err := d.rows(height, width)
	return err
}

// rows returns the number of images of the given size.
func (d *npyImages) rows(height, width int) (int, error) {
	s := d.array.shape
	switch {
	case slices.Equal(s, []int{height, width}):
		return 1, nil
	case len(s) == 2 && s[1] == height*width, len(s) == 3 && s[1] == height && s[2] == width:
		return s[0], nil
	case len(s) == 3:
		return 0, checkSize(s[1], s[2], height, width)
	}
	return 0, &SizeError{Got: fmt.Sprintf("shape %v", s), Height: height, Width: width}
}

// Next implements ImageDecoder.
func (d *npyImages) Next(dst []float32, height, width int) error {
	rows, err := d.rows(height, width)
	if err != nil {
		return err
	}
	size, err := d.array.width()
	if err != nil {
		return err
	}
	if d.row == rows {
		if d.array.fortran {
			return io.EOF
		}
		return ended(d.r, rows)
	}
	if d.array.fortran {
		err = d.column(dst, size)
	} else {
		err = d.line(dst, size, rows)
	}
	if err != nil {
		return err
	}
	d.row++
	return finite(dst)
}

// line reads the next image in C order.
func (d *npyImages) line(dst []float32, size, rows int) error {
	if d.raw == nil {
		d.raw = make([]byte, len(dst)*size)
	}
	if _, err := io.ReadFull(d.r, d.raw); err != nil {
		return fmt.Errorf("%w: the header promises %d images, but there are %d", short(err), rows, d.row)
	}
	for i := range dst {
		dst[i] = d.array.element(d.raw[i*size:])
	}
	return nil
}

// column collects the next image of an array in Fortran order.
func (d *npyImages) column(dst []float32, size int) error {
	if d.raw == nil {
		all, err := d.array.bytes()
		if err != nil {
			return err
		}
		if d.raw, err = readExactly(d.r, all); err != nil {
			return err
		}
	}
	s := d.array.shape
	if len(s) == 3 {
		for y := range s[1] {
			for x := range s[2] {
				dst[y*s[2]+x] = d.array.element(d.raw[(d.row+s[0]*(y+s[1]*x))*size:])
			}
		}
		return nil
	}
	if s[0]*s[1] == len(dst) { // one image
		for y := range s[0] {
			for x := range s[1] {
				dst[y*s[1]+x] = d.array.element(d.raw[(y+s[0]*x)*size:])
			}
		}
		return nil
	}
	for i := range dst {
		dst[i] = d.array.element(d.raw[(d.row+s[0]*i)*size:])
	}
	return nil
}

// element returns the value at the start of raw.
func (a npyArray) element(raw []byte) float32 {
	var order binary.ByteOrder = binary.LittleEndian
	if a.descr[0] == '>' {
		order = binary.BigEndian
	}
	switch a.descr[1:] {
	case "u1":
		return float32(raw[0]) / 255
	case "f4":
		return math.Float32frombits(order.Uint32(raw))
	}
	return float32(math.Float64frombits(order.Uint64(raw)))
}

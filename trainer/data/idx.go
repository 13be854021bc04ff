package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// IDX is a tensor of unsigned bytes in the IDX format, in which MNIST was published. A
// file contains the following, with all numbers big-endian:
//
//	offset  bytes  meaning
//	0       2      zero
//	2       1      element type; only 0x08, unsigned byte, is supported
//	3       1      n, the number of dimensions
//	4       4*n    the dimensions, slowest first, each an unsigned 32-bit number
//	4+4*n   ...    the elements, row-major, and nothing after them
type IDX struct {
	Dims []int  // at least one dimension, each at least 1
	Data []byte // its length is the product of Dims
}

const (
	idxUbyte   = 0x08
	idxMaxDims = 8
	// idxFirstRead is the largest allocation based on a header alone, when the length of
	// the data is not known. More memory is allocated as bytes arrive.
	idxFirstRead = 1 << 20
)

// promised compares the length of data that a header promises with the actual length.
func promised(dims []int, want, have int64) error {
	switch {
	case have < want:
		return fmt.Errorf("%w: the header promises %d bytes of data (dimensions %v), but there are %d", errTruncated, want, dims, have)
	case have > want:
		return fmt.Errorf("the header promises %d bytes of data (dimensions %v), but there are %d", want, dims, have)
	}
	return nil
}

// decodeIDX reads an uncompressed tensor after check accepts its header. Bytes after the tensor
// are an error.
func decodeIDX(r io.Reader, check func(dims []int, want int64) error) (*IDX, error) {
	dims, want, err := decodeIDXHeader(r)
	if err == nil {
		err = check(dims, want)
	}
	if err != nil {
		return nil, err
	}
	data, err := readExactly(r, want)
	if err != nil {
		return nil, fmt.Errorf("%w (dimensions %v)", err, dims)
	}
	return &IDX{Dims: dims, Data: data}, nil
}

// Encode writes the tensor uncompressed.
func (x *IDX) Encode(w io.Writer) error {
	want, err := x.validate()
	if err != nil {
		return err
	}
	if int64(len(x.Data)) != want {
		return fmt.Errorf("data: dimensions %v need %d bytes, got %d", x.Dims, want, len(x.Data))
	}
	head := []byte{0, 0, idxUbyte, byte(len(x.Dims))}
	for _, d := range x.Dims {
		head = binary.BigEndian.AppendUint32(head, uint32(d))
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	_, err = w.Write(x.Data)
	return err
}

// validate checks the dimensions and returns their product.
func (x *IDX) validate() (int64, error) {
	if len(x.Dims) == 0 || len(x.Dims) > idxMaxDims {
		return 0, fmt.Errorf("data: an IDX tensor has 1 to %d dimensions, got %d", idxMaxDims, len(x.Dims))
	}
	return product(x.Dims)
}

// product multiplies dimensions. It rejects zeros and products that do not fit
// into memory.
func product(dims []int) (int64, error) {
	n := int64(1)
	for _, d := range dims {
		if d < 1 || int64(d) > math.MaxUint32 {
			return 0, fmt.Errorf("dimensions %v: each must be at least 1 and fit into 32 bits", dims)
		}
		if int64(d) > math.MaxInt/n {
			return 0, fmt.Errorf("dimensions %v: their product does not fit into memory", dims)
		}
		n *= int64(d)
	}
	return n, nil
}

func idxHeaderLen(dims []int) int { return 4 + 4*len(dims) }

// decodeIDXHeader reads the dimensions and returns them with their product.
func decodeIDXHeader(r io.Reader) (dims []int, elements int64, err error) {
	var head [4]byte
	if n, err := io.ReadFull(r, head[:]); err != nil {
		return nil, 0, fmt.Errorf("%w: the file ends after %d bytes, but an IDX header has at least 8", short(err), n)
	}
	switch {
	case head[0] != 0 || head[1] != 0:
		return nil, 0, fmt.Errorf("not an IDX file: it starts with % x, but IDX starts with 00 00", head[:])
	case head[2] != idxUbyte:
		return nil, 0, fmt.Errorf("IDX element type 0x%02x is not supported; only unsigned bytes (0x08) are", head[2])
	case head[3] == 0 || head[3] > idxMaxDims:
		return nil, 0, fmt.Errorf("IDX with %d dimensions is not supported; 1 to %d are", head[3], idxMaxDims)
	}
	raw := make([]byte, 4*int(head[3]))
	if n, err := io.ReadFull(r, raw); err != nil {
		return nil, 0, fmt.Errorf("%w: a header with %d dimensions has %d bytes, but the file ends after %d", short(err), head[3], len(raw)+4, n+4)
	}
	dims = make([]int, head[3])
	for i := range dims {
		d := binary.BigEndian.Uint32(raw[4*i:])
		if uint64(d) > math.MaxInt {
			return nil, 0, fmt.Errorf("dimension %d is too large for this machine", d)
		}
		dims[i] = int(d)
	}
	elements, err = product(dims)
	return dims, elements, err
}

// readExactly reads n bytes and checks that nothing follows.
func readExactly(r io.Reader, n int64) ([]byte, error) {
	data := make([]byte, 0, min(n, idxFirstRead))
	for int64(len(data)) < n {
		if len(data) == cap(data) {
			data = slices.Grow(data, int(min(n-int64(len(data)), int64(len(data)))))
		}
		room := data[len(data):min(int64(cap(data)), n)]
		got, err := io.ReadFull(r, room)
		data = data[:len(data)+got]
		if errors.Is(err, errGarbage) {
			return nil, fmt.Errorf("%w, and there are %d bytes of data instead of %d", err, len(data), n)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: expected %d bytes of data, found %d", short(err), n, len(data))
		}
	}
	var one [1]byte
	switch _, err := io.ReadFull(r, one[:]); {
	case err == nil:
		return nil, fmt.Errorf("found more than the expected %d bytes of data", n)
	case errors.Is(err, errGarbage):
		return nil, err
	case err != io.EOF:
		return nil, fmt.Errorf("%w: after %d bytes of data", short(err), n)
	}
	return data, nil
}

// errTruncated is in the chain of every error about a file that ends too early.
var errTruncated = errors.New("truncated")

// short turns the end of input into errTruncated and returns other errors unchanged.
func short(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errTruncated
	}
	return err
}

package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"gorgonia.org/tensor"
)

// dtype is a supported element type, by its name in the format.
type dtype string

const (
	f64 dtype = "F64"
	f32 dtype = "F32"
	i64 dtype = "I64"
	i32 dtype = "I32"
	u8  dtype = "U8"
)

// size returns the number of bytes of an element, 0 for an unsupported type.
func (d dtype) size() int {
	switch d {
	case f64, i64:
		return 8
	case f32, i32:
		return 4
	case u8:
		return 1
	}
	return 0
}

// element is the constraint for element types of tensors.
type element interface {
	float64 | float32 | int64 | int32 | uint8
}

// values returns the elements of a tensor in row-major order, whatever its view or
// layout, and their type. The result is a slice of one of the types of element and
// may alias t.
func values(t *tensor.Dense) (any, dtype, error) {
	if t == nil || t.Dtype().Type == nil {
		return nil, "", errors.New("there is no tensor")
	}
	switch data := t.Data().(type) {
	case float64:
		return []float64{data}, f64, nil
	case float32:
		return []float32{data}, f32, nil
	case int64:
		return []int64{data}, i64, nil
	case int32:
		return []int32{data}, i32, nil
	case uint8:
		return []uint8{data}, u8, nil
	case []float64:
		return rowMajor(t, data), f64, nil
	case []float32:
		return rowMajor(t, data), f32, nil
	case []int64:
		return rowMajor(t, data), i64, nil
	case []int32:
		return rowMajor(t, data), i32, nil
	case []uint8:
		return rowMajor(t, data), u8, nil
	}
	return nil, "", fmt.Errorf("elements of type %v cannot be stored; use float64, float32, int64, int32 or uint8", t.Dtype())
}

// rowMajor returns the backing of a tensor in row-major order.
func rowMajor[T element](t *tensor.Dense, data []T) []T {
	n := t.Shape().TotalSize()
	if !t.RequiresIterator() && !t.DataOrder().IsColMajor() && len(data) == n {
		return data
	}
	out := make([]T, 0, n)
	it := t.Iterator()
	for i, err := it.Next(); err == nil; i, err = it.Next() {
		out = append(out, data[i])
	}
	return out
}

// chunkBytes is the number of bytes converted per call of a Reader or Writer.
const chunkBytes = 1 << 16

// writeValues writes the result of values.
func writeValues(w io.Writer, vals any) error {
	switch v := vals.(type) {
	case []float64:
		return writeChunks(w, v, 8, func(b []byte, x float64) { binary.LittleEndian.PutUint64(b, math.Float64bits(x)) })
	case []float32:
		return writeChunks(w, v, 4, func(b []byte, x float32) { binary.LittleEndian.PutUint32(b, math.Float32bits(x)) })
	case []int64:
		return writeChunks(w, v, 8, func(b []byte, x int64) { binary.LittleEndian.PutUint64(b, uint64(x)) })
	case []int32:
		return writeChunks(w, v, 4, func(b []byte, x int32) { binary.LittleEndian.PutUint32(b, uint32(x)) })
	case []uint8:
		_, err := w.Write(v)
		return err
	}
	return fmt.Errorf("cannot write %T", vals)
}

func writeChunks[T element](w io.Writer, v []T, size int, put func([]byte, T)) error {
	buf := make([]byte, chunkBytes)
	for len(v) > 0 {
		n := min(len(v), chunkBytes/size)
		for i, x := range v[:n] {
			put(buf[i*size:], x)
		}
		if _, err := w.Write(buf[:n*size]); err != nil {
			return err
		}
		v = v[n:]
	}
	return nil
}

// readValues reads count elements into a new slice.
func readValues(r io.Reader, d dtype, count int) (any, error) {
	switch d {
	case f64:
		return readChunks[float64](r, count, 8)
	case f32:
		return readChunks[float32](r, count, 4)
	case i64:
		return readChunks[int64](r, count, 8)
	case i32:
		return readChunks[int32](r, count, 4)
	case u8:
		out := make([]uint8, count)
		_, err := io.ReadFull(r, out)
		return out, err
	}
	return nil, fmt.Errorf("cannot read dtype %q", d)
}

func readChunks[T element](r io.Reader, count, size int) ([]T, error) {
	out := make([]T, count)
	buf := make([]byte, min(chunkBytes, count*size))
	for at := 0; at < count; {
		n := min(count-at, chunkBytes/size)
		if _, err := io.ReadFull(r, buf[:n*size]); err != nil {
			return nil, err
		}
		if _, err := binary.Decode(buf[:n*size], binary.LittleEndian, out[at:at+n]); err != nil {
			return nil, err
		}
		at += n
	}
	return out, nil
}

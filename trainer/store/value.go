package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// A Type is the type of a value's elements.
type Type uint8

// The types of values.
const (
	Bytes   Type = iota + 1 // not a tensor
	Float32                 // IEEE 754, little-endian
	Float64
)

// String returns "bytes", "float32" or "float64".
func (t Type) String() string {
	switch t {
	case Bytes:
		return "bytes"
	case Float32:
		return "float32"
	case Float64:
		return "float64"
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// size returns the bytes of an element, or 0 for an unknown type.
func (t Type) size() int {
	switch t {
	case Bytes:
		return 1
	case Float32:
		return 4
	case Float64:
		return 8
	}
	return 0
}

// maxDims is the maximum number of dimensions.
const maxDims = 8

// A Value is a tensor, or bytes.
type Value struct {
	Type  Type
	Shape []int  // nil for Bytes
	Data  []byte // row-major
}

// Raw returns b as a value.
func Raw(b []byte) Value { return Value{Type: Bytes, Data: b} }

// Tensor copies data to a tensor. Without a shape it has one dimension.
func Tensor[F float32 | float64](data []F, shape ...int) (Value, error) {
	if len(shape) == 0 {
		shape = []int{len(data)}
	}
	v := Value{Type: typeOf[F](), Shape: slices.Clone(shape)}
	v.Data, _ = binary.Append(nil, binary.LittleEndian, data) // floats have a fixed size
	return v, v.Check()
}

// Floats returns a copy of a tensor's elements, in row-major order.
func Floats[F float32 | float64](v Value) ([]F, error) {
	if v.Type != typeOf[F]() {
		return nil, fmt.Errorf("the value must be %v, not %v", typeOf[F](), v)
	}
	if err := v.Check(); err != nil {
		return nil, err
	}
	data := make([]F, len(v.Data)/v.Type.size())
	_, err := binary.Decode(v.Data, binary.LittleEndian, data)
	return data, err
}

func typeOf[F float32 | float64]() Type {
	if _, single := any(F(0)).(float32); single {
		return Float32
	}
	return Float64
}

// Join joins tensors along their first dimension, in order. Their types and other
// dimensions must be equal.
func Join(parts ...Value) (Value, error) {
	if len(parts) == 0 {
		return Value{}, errors.New("nothing to join")
	}
	whole := Value{Type: parts[0].Type, Shape: slices.Clone(parts[0].Shape)}
	if len(whole.Shape) == 0 {
		return Value{}, fmt.Errorf("part 0 must be a tensor with a dimension to join along, not %v", parts[0])
	}
	whole.Shape[0] = 0
	for i, p := range parts {
		if err := p.Check(); err != nil {
			return Value{}, fmt.Errorf("part %d: %w", i, err)
		}
		if p.Type != whole.Type || len(p.Shape) == 0 || !slices.Equal(p.Shape[1:], whole.Shape[1:]) {
			return Value{}, fmt.Errorf("part %d is %v, which cannot be joined to %v", i, p, parts[0])
		}
		whole.Shape[0] += p.Shape[0]
		whole.Data = append(whole.Data, p.Data...)
	}
	return whole, nil
}

// String describes the value without its data, such as "float64 [100]" or "12 bytes".
func (v Value) String() string {
	if v.Type == Bytes {
		return fmt.Sprintf("%d bytes", len(v.Data))
	}
	return fmt.Sprintf("%v %v", v.Type, v.Shape)
}

// Check returns ErrRefused, and why, if type, shape and data do not match or the value is
// too large.
func (v Value) Check() error {
	if v.Type.size() == 0 {
		return fmt.Errorf("%w: %v does not exist", ErrRefused, v.Type)
	}
	if len(v.Data) > MaxValue {
		return fmt.Errorf("%w: a value must have at most %d bytes, not %d: split it", ErrRefused, MaxValue, len(v.Data))
	}
	if v.Type == Bytes {
		if v.Shape != nil {
			return fmt.Errorf("%w: bytes have no shape %v", ErrRefused, v.Shape)
		}
		return nil
	}
	if len(v.Shape) > maxDims {
		return fmt.Errorf("%w: a shape must have at most %d dimensions, not %d", ErrRefused, maxDims, len(v.Shape))
	}
	elements := 1
	for _, n := range v.Shape {
		if n < 0 || n > MaxValue {
			return fmt.Errorf("%w: a dimension must be from 0 to %d, not %d", ErrRefused, MaxValue, n)
		}
		if elements *= n; elements > MaxValue {
			return fmt.Errorf("%w: a value must have at most %d bytes: split %v", ErrRefused, MaxValue, v)
		}
	}
	if want := elements * v.Type.size(); want != len(v.Data) {
		return fmt.Errorf("%w: %v takes %d bytes, not %d", ErrRefused, v, want, len(v.Data))
	}
	return nil
}

// CheckUpdate returns ErrRefused, and why, if a key that holds old cannot become v.
func (v Value) CheckUpdate(key string, old Value) error {
	if v.Type == old.Type && slices.Equal(v.Shape, old.Shape) {
		return nil
	}
	return fmt.Errorf("%w: %q holds %v, so it cannot become %v; use another key", ErrRefused, key, old, v)
}

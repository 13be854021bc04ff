package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// header is the parsed header of a file.
type header struct {
	slots    []slot // by offset
	metadata map[string]string
}

// slot is the location of a tensor's values.
type slot struct {
	name       string
	dtype      dtype
	shape      []int
	count      uint64 // elements
	begin, end uint64 // bytes from the end of the header
}

// parseHeader parses the header and checks each entry on its own.
func parseHeader(text []byte) (*header, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("the header is not UTF-8 text")
	}
	if len(text) == 0 || text[0] != '{' {
		return nil, errors.New("not a safetensors file: the header does not start with {")
	}
	fields, err := object(text)
	if err != nil {
		return nil, fmt.Errorf("the header: %w", err)
	}
	var h header
	for _, f := range fields {
		if f.key == metadataKey {
			if h.metadata, err = parseMetadata(f.value); err != nil {
				return nil, fmt.Errorf("the header's metadata: %w", err)
			}
			continue
		}
		s, err := parseSlot(f.value)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", f.key, err)
		}
		s.name = f.key
		h.slots = append(h.slots, s)
	}
	slices.SortStableFunc(h.slots, func(a, b slot) int {
		switch {
		case a.begin < b.begin:
			return -1
		case a.begin > b.begin:
			return 1
		}
		return 0
	})
	return &h, nil
}

// checkData checks that the tensors cover size bytes of data exactly once.
func (h *header) checkData(size uint64) error {
	at := uint64(0)
	for _, s := range h.slots {
		switch {
		case s.begin < at:
			return fmt.Errorf("tensor %q overlaps another: it starts at byte %d of the data, before byte %d", s.name, s.begin, at)
		case s.begin > at:
			return fmt.Errorf("there is a hole of %d bytes before tensor %q", s.begin-at, s.name)
		case s.end > size:
			return fmt.Errorf("truncated: tensor %q ends at byte %d of the data, but the file has %d bytes of data", s.name, s.end, size)
		}
		at = s.end
	}
	if at != size {
		return fmt.Errorf("%d bytes follow the last tensor", size-at)
	}
	return nil
}

// parseSlot parses the entry of a tensor. It ignores unknown fields, which later versions
// of the format may add.
func parseSlot(text []byte) (slot, error) {
	fields, err := object(text)
	if err != nil {
		return slot{}, err
	}
	var s slot
	var shape, offsets []uint64
	for _, f := range fields {
		switch f.key {
		case "dtype":
			if err = json.Unmarshal(f.value, &s.dtype); err == nil && s.dtype.size() == 0 {
				err = fmt.Errorf("%q is not supported; F64, F32, I64, I32 and U8 are", s.dtype)
			}
		case "shape":
			shape, err = unsigned(f.value)
		case "data_offsets":
			offsets, err = unsigned(f.value)
		}
		if err != nil {
			return slot{}, fmt.Errorf("%s: %w", f.key, err)
		}
	}
	if s.dtype.size() == 0 || shape == nil || len(offsets) != 2 {
		return slot{}, errors.New("the entry needs dtype, shape and two data_offsets")
	}
	s.begin, s.end = offsets[0], offsets[1]
	return s, s.measure(shape)
}

// measure sets the shape and checks it against the number of bytes between the offsets.
func (s *slot) measure(shape []uint64) error {
	s.shape = make([]int, len(shape))
	s.count = 1
	for i, n := range shape {
		if n == 0 {
			return fmt.Errorf("shape %v: a tensor without elements cannot be loaded", shape)
		}
		over, product := bits.Mul64(s.count, n)
		if over != 0 || product > math.MaxInt/8 {
			return fmt.Errorf("shape %v does not fit into memory", shape)
		}
		s.shape[i], s.count = int(n), product
	}
	if want := s.count * uint64(s.dtype.size()); s.end < s.begin || s.end-s.begin != want {
		return fmt.Errorf("shape %v of %s needs %d bytes, but its data_offsets are %d and %d", shape, s.dtype, want, s.begin, s.end)
	}
	return nil
}

// unsigned parses an array of non-negative whole numbers. It never returns nil
// without an error.
func unsigned(text []byte) ([]uint64, error) {
	var v []uint64
	if err := json.Unmarshal(text, &v); err != nil || v == nil {
		return nil, fmt.Errorf("expected an array of whole numbers, got %.40s", text)
	}
	return v, nil
}

// parseMetadata parses an object whose values are strings.
func parseMetadata(text []byte) (map[string]string, error) {
	fields, err := object(text)
	if err != nil {
		return nil, err
	}
	m := make(map[string]string, len(fields))
	for _, f := range fields {
		var v *string
		if err := json.Unmarshal(f.value, &v); err != nil || v == nil {
			return nil, fmt.Errorf("%q: expected a string, got %.40s", f.key, f.value)
		}
		m[f.key] = *v
	}
	return m, nil
}

// field is a member of a JSON object.
type field struct {
	key   string
	value json.RawMessage
}

// object returns the members of a JSON object in order. Unlike encoding/json it rejects
// duplicate keys: a reader that takes the first and a reader that takes the last would
// load different tensors from one file.
func object(text []byte) ([]field, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, fmt.Errorf("expected a JSON object, got %.40q", text)
	}
	var fields []field
	seen := make(map[string]bool)
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, fmt.Errorf("bad JSON: %w", err)
		}
		key, ok := t.(string)
		if !ok {
			return nil, fmt.Errorf("bad JSON: expected a name, got %v", t)
		}
		if seen[key] {
			return nil, fmt.Errorf("%q occurs twice", key)
		}
		seen[key] = true
		f := field{key: key}
		if err := dec.Decode(&f.value); err != nil {
			return nil, fmt.Errorf("bad JSON: %w", err)
		}
		fields = append(fields, f)
	}
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("bad JSON: %w", err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("bad JSON: there is text after the object")
	}
	return fields, nil
}

package checkpoint

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"gorgonia.org/tensor"

	"github.com/ringtrain/ringtrain/collective/errtext"
)

// Load reads a checkpoint written by Save or by another program. If a file violates the
// format, the error names the file, the tensor and the rule. Sizes are compared with the
// file's length before memory is allocated. Tensors without elements, which the format
// allows, are an error because tensor.Dense cannot represent them. Load also fails if one of
// the checks does.
func Load(path string, checks ...Check) (File, error) {
	info, err := os.Stat(path) // first, because opening a pipe would wait for a writer
	if err != nil {
		return File{}, fmt.Errorf("checkpoint %s: %w", path, errtext.Reason(err))
	}
	if !info.Mode().IsRegular() {
		return File{}, fmt.Errorf("checkpoint %s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return File{}, fmt.Errorf("checkpoint %s: %w", path, errtext.Reason(err))
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return File{}, fmt.Errorf("checkpoint %s: %w", path, errtext.Reason(err))
	}
	out, err := decode(bufio.NewReaderSize(f, chunkBytes), info.Size(), checks...)
	if err != nil {
		return File{}, fmt.Errorf("checkpoint %s: %w", path, err)
	}
	return out, nil
}

// decode reads a checkpoint of size bytes.
func decode(r io.Reader, size int64, checks ...Check) (File, error) {
	text, err := readHeader(r, size)
	if err != nil {
		return File{}, err
	}
	h, err := parseHeader(text)
	if err != nil {
		return File{}, err
	}
	if err := h.checkData(uint64(size) - 8 - uint64(len(text))); err != nil {
		return File{}, err
	}
	for _, check := range checks {
		if err := check(h.public()); err != nil {
			return File{}, err
		}
	}
	out := File{Metadata: h.metadata}
	for _, s := range h.slots {
		backing, err := readValues(r, s.dtype, int(s.count))
		if err != nil {
			return File{}, fmt.Errorf("tensor %q: %w", s.name, err)
		}
		t := tensor.New(tensor.WithShape(s.shape...), tensor.WithBacking(backing))
		out.Tensors = append(out.Tensors, Named{Name: s.name, Tensor: t})
	}
	return out, nil
}

// readHeader returns the text of the header.
func readHeader(r io.Reader, size int64) ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, fmt.Errorf("not a safetensors file: it has %d bytes, but the header's length alone takes 8", max(size, 0))
	}
	n := binary.LittleEndian.Uint64(head[:])
	if n > maxHeader {
		return nil, fmt.Errorf("not a safetensors file: it announces a header of %d bytes, but the format allows at most %d", n, maxHeader)
	}
	if int64(n) > size-8 {
		return nil, fmt.Errorf("truncated: the file announces a header of %d bytes, but %d bytes follow", n, size-8)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, fmt.Errorf("cannot read the header: %w", err)
	}
	return text, nil
}

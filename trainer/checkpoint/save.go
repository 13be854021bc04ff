package checkpoint

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/ringtrain/ringtrain/trainer/atomicfile"
)

const (
	// maxHeader is the longest header that the format allows, in bytes.
	maxHeader = 100_000_000
	// headerAlign is the multiple to which the header is padded with spaces.
	headerAlign = 8
	// metadataKey is reserved: no tensor can have this name.
	metadataKey = "__metadata__"
)

// A Writer writes the files of one run of a program. Use the zero Writer for directories in
// which no other process writes.
type Writer struct {
	// Run identifies the run: letters, digits and hyphens. It is part of the name of each
	// temporary file, so that Sweep can recognise files left behind by a run that was killed.
	Run string
	// Progress, if not nil, is called repeatedly while a file is written, with the number
	// of bytes hashed, written or synced since the last call. If the disk stops responding,
	// the calls stop.
	Progress func(bytes int)
}

// Save is [Writer.Save] with the zero Writer.
func Save(path string, f File) error { return Writer{}.Save(path, f) }

// Save writes a checkpoint. It replaces the file at path atomically: the new file is written
// next to it, synced and renamed, so a reader, or a crash at any time, sees either the old
// file or the new one. Save does not create directories. Tensors of any layout are stored
// row-major. A tensor without elements or name, or with a duplicate name, is an error, and
// then nothing is written.
func (w Writer) Save(path string, f File) error {
	plan, err := f.plan()
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", path, err)
	}
	out, err := atomicfile.Create(path, atomicfile.Options{Tag: w.Run, Progress: w.Progress})
	if err != nil {
		return fmt.Errorf("checkpoint %s: %w", path, err)
	}
	err = plan.write(out)
	if err == nil {
		err = out.Replace()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("checkpoint %s: %w", path, err), out.Discard())
	}
	return nil
}

// progress calls Progress if it is set.
func (w Writer) progress(bytes int) {
	if w.Progress != nil {
		w.Progress(bytes)
	}
}

// plan is a file ready to be written. Nothing can fail any more except the writing.
type plan struct {
	header []byte // including its length and padding
	values []any  // results of the function values, in order
}

func (p *plan) write(w io.Writer) error {
	if _, err := w.Write(p.header); err != nil {
		return err
	}
	for _, v := range p.values {
		if err := writeValues(w, v); err != nil {
			return err
		}
	}
	return nil
}

// plan checks the file and determines its layout.
func (f *File) plan() (*plan, error) {
	var p plan
	var header bytes.Buffer
	header.WriteByte('{')
	if f.Metadata != nil {
		text, err := marshalMetadata(f.Metadata)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&header, "%q:%s", metadataKey, text)
	}
	seen := make(map[string]bool, len(f.Tensors))
	offset := 0
	for _, n := range f.Tensors {
		if err := checkName(n.Name, seen); err != nil {
			return nil, err
		}
		vals, entry, err := layout(n, offset)
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", n.Name, err)
		}
		if header.Len() > 1 {
			header.WriteByte(',')
		}
		header.Write(entry.text)
		p.values = append(p.values, vals)
		offset = entry.end
	}
	header.WriteByte('}')
	for header.Len()%headerAlign != 0 {
		header.WriteByte(' ')
	}
	if header.Len() > maxHeader {
		return nil, fmt.Errorf("names and metadata need a header of %d bytes, but the format allows at most %d", header.Len(), maxHeader)
	}
	p.header = append(binary.LittleEndian.AppendUint64(nil, uint64(header.Len())), header.Bytes()...)
	return &p, nil
}

// checkName rejects names that the format does not allow, and remembers the others in seen.
func checkName(name string, seen map[string]bool) error {
	switch {
	case name == "" || name == metadataKey:
		return fmt.Errorf("a tensor cannot be named %q", name)
	case !utf8.ValidString(name):
		return fmt.Errorf("the tensor name %q is not UTF-8", name)
	case seen[name]:
		return fmt.Errorf("two tensors are named %q", name)
	}
	seen[name] = true
	return nil
}

// entry is a tensor's part of the header.
type entry struct {
	text []byte
	end  int // offset after its values
}

// layout places a tensor's values at an offset.
func layout(n Named, offset int) (any, entry, error) {
	vals, d, err := values(n.Tensor)
	if err != nil {
		return nil, entry{}, err
	}
	shape := append([]int{}, n.Tensor.Shape()...) // not nil, which would be null in JSON
	e := entry{end: offset + n.Tensor.Shape().TotalSize()*d.size()}
	name, err := json.Marshal(n.Name)
	if err != nil {
		return nil, entry{}, err
	}
	info, err := json.Marshal(struct {
		DType   string `json:"dtype"`
		Shape   []int  `json:"shape"`
		Offsets [2]int `json:"data_offsets"`
	}{string(d), shape, [2]int{offset, e.end}})
	if err != nil {
		return nil, entry{}, err
	}
	e.text = append(append(name, ':'), info...)
	return vals, e, nil
}

// marshalMetadata encodes the metadata with sorted keys, so that equal files have equal bytes.
func marshalMetadata(m map[string]string) ([]byte, error) {
	for k, v := range m {
		if !utf8.ValidString(k) || !utf8.ValidString(v) {
			return nil, fmt.Errorf("metadata %q is not UTF-8 text", k)
		}
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(m)
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), err
}

// Package checkpoint stores named tensors and metadata in safetensors files, which other
// programs can read.
//
// All numbers in a file are little-endian:
//
//	offset  bytes  meaning
//	0       8      n, the length of the header, 100 MB at most
//	8       n      a JSON object, padded with spaces to a multiple of 8:
//	               {"__metadata__": {"key": "text", ...},
//	                "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...}
//	8+n     ...    the values, row-major; offsets count from here
//
// The values of all tensors are consecutive from offset 0 to the end of the file, without
// holes or overlaps, and names are unique. [Load] checks all of that before it allocates
// memory for a tensor. [Save] replaces a file atomically. A [Training] is such a file
// with everything needed to resume after some step; [Latest] finds the newest intact one.
//
// Format: https://github.com/huggingface/safetensors.
package checkpoint

import "gorgonia.org/tensor"

// Named is a tensor with the path of its parameter, such as "layers.0.W".
type Named struct {
	Name   string
	Tensor *tensor.Dense // of float32, float64, int64, int32 or uint8
}

// File is the contents of a checkpoint.
type File struct {
	// Tensors are in the order of their values in the file.
	Tensors []Named
	// Metadata is free text: config, step, seed. It is nil if the file has none.
	Metadata map[string]string
}

// Tensor returns the tensor with a name.
func (f *File) Tensor(name string) (*tensor.Dense, bool) {
	for _, n := range f.Tensors {
		if n.Name == name {
			return n.Tensor, true
		}
	}
	return nil, false
}

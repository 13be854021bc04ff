// Package checkpoint keeps named tensors and notes about them in safetensors
// files, which other programs read too.
//
// A file is, all numbers little-endian:
//
//	offset  bytes  meaning
//	0       8      n, the length of the header, 100 MB at most
//	8       n      a JSON object, padded with spaces to a multiple of 8:
//	               {"__metadata__": {"key": "text", ...},
//	                "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, ...}
//	8+n     ...    the values, row-major; offsets count from here
//
// The values of all tensors lie one behind another from offset 0 to the end of the
// file, without holes or overlaps, and no name occurs twice. [Load] holds a file to all
// of that before it takes memory for a tensor. [Save] replaces a file whole or not
// at all. A [Training] is such a file with all that is needed to go on after some
// step, and [Latest] finds the newest that is whole.
//
// Format: https://github.com/huggingface/safetensors.
package checkpoint

import "gorgonia.org/tensor"

// Named is a tensor with the path of the parameter it belongs to, as "layers.0.W".
type Named struct {
	Name   string
	Tensor *tensor.Dense // of float32, float64, int64, int32 or uint8
}

// File is the content of a checkpoint.
type File struct {
	// Tensors are in the order of their values in the file.
	Tensors []Named
	// Metadata is free text: config, step, seed. Nil when the file has none.
	Metadata map[string]string
}

// Tensor returns the tensor of a name.
func (f *File) Tensor(name string) (*tensor.Dense, bool) {
	for _, n := range f.Tensors {
		if n.Name == name {
			return n.Tensor, true
		}
	}
	return nil, false
}

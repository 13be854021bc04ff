package device

import (
	"github.com/ringtrain/ringtrain/cuda"
	"github.com/ringtrain/ringtrain/nccl"
)

// Inspect describes the GPUs of this machine, and the libraries that training needs.
func Inspect() cuda.Report {
	r := cuda.Inspect()
	if cuda.Built() == nil {
		r.Libraries = append(r.Libraries, nccl.Inspect())
	}
	return r
}

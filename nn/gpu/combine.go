package gpu

import "github.com/ringtrain/ringtrain/nn"

// Add implements nn.Combine.
func (b *Backend) Add(y, x, z nn.Buffer) {
	need("Add", x.Len() == y.Len() && z.Len() == y.Len())
	b.launch("add", y.Len(), b.at(y), b.reads(x), b.reads(z), count(y.Len()))
}

// Insert implements nn.Combine.
func (b *Backend) Insert(y, x nn.Buffer, width, at, part int) {
	b.columns("insert", y, x, width, at, part)
}

// Extract implements nn.Combine.
func (b *Backend) Extract(x, y nn.Buffer, width, at, part int) {
	b.columns("extract", x, y, width, at, part)
}

// columns queues a kernel that copies between a whole matrix and some columns of
// another.
func (b *Backend) columns(kernel string, to, from nn.Buffer, width, at, part int) {
	whole, some := to, from
	if kernel == "extract" {
		whole, some = from, to
	}
	need(kernel, rows(kernel, whole, width) == rows(kernel, some, part) && at >= 0 && at+part <= width)
	b.launch(kernel, some.Len(), b.at(to), b.reads(from), count(some.Len()), number(width), number(at), number(part))
}

package ner

import "github.com/ringtrain/ringtrain/nn"

// A tape holds what the states of a batch computed, for the backward pass. Each state has a
// row.
type tape struct {
	tokens  []int32 // the features, as rows of the batch; -1 for none; [rows][tokens]
	pieces  []uint8 // the largest piece of each unit, or dropped; [rows][width]
	units   matrix  // after dropout; [rows][width]
	dscores matrix  // gradients of the scores; [rows][moves]

	spare struct {
		tokens         []int32
		pieces         []uint8
		units, dscores mirror
	}
}

// dropped stands for a unit that passes no gradient on.
const dropped = 0xFF

// grow makes room for a number of rows in temporary memory of b.
func (t *tape) grow(b nn.Backend, n *network, rows int) {
	t.tokens = grown(&t.spare.tokens, rows*n.Features.Tokens())
	t.pieces = grown(&t.spare.pieces, rows*n.width)
	t.units = t.spare.units.temp(b, rows*n.width)
	t.dscores = t.spare.dscores.temp(b, rows*n.moves)
}

// A mirror is memory on the host for values of a backend that has memory of its own. It stays
// empty for other backends.
type mirror []float32

// read returns the values of v.
func (m *mirror) read(b nn.Backend, v nn.Buffer) []float32 {
	if host := v.Float32s(); host != nil || v.Len() == 0 {
		return host
	}
	host := grown((*[]float32)(m), v.Len())
	b.Read(host, v)
	return host
}

// temp returns n elements in temporary memory of b.
func (m *mirror) temp(b nn.Backend, n int) matrix {
	buffer := b.Temp(n)
	if host := buffer.Float32s(); host != nil || n == 0 {
		return matrix{buffer, host}
	}
	return matrix{buffer, grown((*[]float32)(m), n)}
}

// A matrix is temporary memory that the host writes and a backend reads after store.
type matrix struct {
	buffer nn.Buffer
	host   []float32
}

func (m matrix) store(b nn.Backend) nn.Buffer {
	if m.buffer.Float32s() == nil {
		b.Copy(m.buffer, m.host)
	}
	return m.buffer
}

// grown returns the first n elements of v, in new memory if it has fewer.
func grown[T any](v *[]T, n int) []T {
	if cap(*v) < n {
		*v = make([]T, n+n/4)
	}
	return (*v)[:n]
}

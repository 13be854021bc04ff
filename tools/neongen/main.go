// Command neongen writes the kernels of nn/cpu/sgemm for arm64: the assembly and its Go
// declarations. go generate in that package runs it. The kernels have the same names, fields
// and contracts as those of sgemmgen, except that the rows of A must be neighbours: product
// kernels load several of them at once.
package main

import (
	"fmt"

	"github.com/ringtrain/ringtrain/tools/neon"
)

// A shape is the largest kernel for a number of registers per row of C. There is one for every
// smaller number of rows, too.
type shape struct{ rows, vectors int }

var shapes = []shape{{12, 1}, {12, 2}, {4, 4}, {2, 8}}

func main() {
	g := generator{neon.New("neongen", "sgemm", "!noasm")}
	neon.Main(g.Writer, func() {
		for _, s := range shapes {
			for rows := 1; rows <= s.rows; rows++ {
				g.product(rows, s.vectors)
			}
		}
		g.copies()
		g.transposes()
	})
}

type generator struct{ *neon.Writer }

// begin begins a function with one pointer to words.
func (g generator) begin(name, param string, words int, doc string) {
	g.Begin(name, fmt.Sprintf("(%s *[%d]uint64)", param, words), 8, doc)
	g.Pointers(param)
}

var fadd = neon.Op{Name: "FADD", Shape: "S4", Word: 0x4e20d400}

// multiplyAdd emits v[to] += v[b]·v[a][lane], rounded once.
func (g generator) multiplyAdd(to, b, a, lane int) {
	word := 0x4f801000 | lane&1<<21 | a<<16 | lane>>1<<11 | b<<5 | to
	g.Emit("WORD $%#08x // FMLA V%d.S[%d], V%d.S4, V%d.S4", word, a, lane, b, to)
}

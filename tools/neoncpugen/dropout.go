package main

import "github.com/ringtrain/ringtrain/tools/neon"

// The multipliers and the number of rounds of Philox4x32-10.
const (
	philoxM0     = 0xD2511F53
	philoxM1     = 0xCD9E8D57
	philoxRounds = 10
)

// The registers of dropout. Those from column to factor are loaded from the state, which
// nn/cpu/simd_arm64.go describes.
const (
	column = 16 + iota // of four counters
	row
	layer
	step
	threshold
	factor
	multiplier0
	multiplier1
	advance
	key
)

// dropout draws the words of four Philox counters at a time, one counter in each lane. The
// elements are loaded and stored in the same way: the j-th register has those of the j-th
// words.
func (g generator) dropout() {
	var (
		long      = neon.Op{Name: "UMULL", Word: 0x2ea0c000}
		lower     = neon.Op{Name: "UZP1", Shape: "S4", Word: 0x4e801800}
		upper     = neon.Op{Name: "UZP2", Shape: "S4", Word: 0x4e805800}
		atLeast   = neon.Op{Name: "CMHS", Shape: "S4", Word: 0x6ea03c00} // unsigned
		lows      = [2]int{8, 9}
		highs     = [2]int{10, 11}
		registers = neon.List(0, 4, "S4")
	)
	g.Begin("neonDropout", "(y, x *float32, n int, s *dropState)", 32, "is dropLoop for whole blocks.")
	g.Pointers("y", "x", "n", "s")
	g.Emit("VLD1.P 16(R3), [V%d.S4]", column)
	for r := row; r <= factor; r++ {
		g.Emit("VLD1R.P 4(R3), [V%d.S4]", r)
	}
	g.Constant(multiplier0, philoxM0)
	g.Constant(multiplier1, philoxM1)
	g.Constant(advance, 4)
	g.Blocks(2, block, func() {
		c := [4]int{0, 1, 2, 3}
		for i := range c {
			g.Emit("VORR V%d.B16, V%d.B16, V%d.B16", column+i, column+i, c[i])
		}
		g.Emit("MOVD R3, R5")
		for range philoxRounds {
			for i, m := range []int{multiplier0, multiplier1} {
				g.Three(long, 4, c[2*i], m)
				g.Three(long.Upper(), 5, c[2*i], m)
				g.Three(lower, lows[i], 4, 5)
				g.Three(upper, highs[i], 4, 5)
			}
			for i := range 2 {
				g.Emit("VLD1R.P 4(R5), [V%d.S4]", key)
				g.Emit("VEOR V%d.B16, V%d.B16, V%d.B16", key, c[2*i+1], c[2*i+1])
				g.Emit("VEOR V%d.B16, V%d.B16, V%d.B16", highs[1-i], c[2*i+1], c[2*i])
			}
			for i := range 2 {
				g.Emit("VORR V%d.B16, V%d.B16, V%d.B16", lows[1-i], lows[1-i], c[2*i+1])
			}
		}
		for _, words := range c {
			g.Emit("VUSHR $8, V%d.S4, V%d.S4", words, words)
			g.Three(atLeast, 4+words, words, threshold)
		}
		g.Emit("VLD4.P 64(R1), %s", registers)
		for i := range 4 {
			g.Three(mul, i, i, factor)
			g.Emit("VAND V%d.B16, V%d.B16, V%d.B16", 4+i, i, i)
		}
		g.Emit("VST4.P %s, 64(R0)", registers)
		g.Emit("VADD V%d.S4, V%d.S4, V%d.S4", advance, column, column)
	})
	g.Emit("RET")
}

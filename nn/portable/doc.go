// Package portable has float64 functions whose results have the same bits on every
// processor. IEEE 754 fixes the results of +, -, *, / and square root. Package math adds
// assembly on some processors, which rounds differently, and a Go compiler may fuse x*y+z
// into one operation with one rounding. So these functions use nothing but those
// operations, and convert every product explicitly, which forbids fusion.
//
// They serve initial weights, schedules, losses and generated data. Exp and Log are within
// one unit in the last place. nn/cpu has float32 functions of its own, which work on
// vectors.
package portable

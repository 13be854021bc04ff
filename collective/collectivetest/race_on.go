//go:build race

package collectivetest

// raced says that the race detector slows everything down.
const raced = true

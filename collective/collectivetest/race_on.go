//go:build race

package collectivetest

// raced says that the race detector is on, which slows everything down.
const raced = true

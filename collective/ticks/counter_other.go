//go:build !linux || !amd64 || noasm

package ticks

// useCounter reports that there is no counter.
func useCounter() bool { return false }

func counter() Ticks { return 0 }

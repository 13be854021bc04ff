package shm

import "github.com/ringtrain/ringtrain/collective"

// Reserving returns Options with another function that reserves memory.
func Reserving(reserve func(fd int, size int64) error) Options { return Options{reserve: reserve} }

// Unable returns Options of a rank that cannot share memory.
func Unable(why error) Options { return Options{cannot: why} }

// Reading makes ranks read large vectors, even if copies are faster here.
var Reading = reading

// StayFar makes a rank take the cores of the others for far, whatever it measures.
func StayFar(t collective.Transport) {
	t.(*Transport).distance = distance{far: true}
}

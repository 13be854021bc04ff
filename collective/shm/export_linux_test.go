package shm

import (
	"slices"

	"github.com/ringtrain/ringtrain/collective"
)

// Reserving returns Options with another function that reserves memory.
func Reserving(reserve func(fd int, size int64) error) Options { return Options{reserve: reserve} }

// Unable returns Options of a rank that cannot share memory.
func Unable(why error) Options { return Options{cannot: why} }

// Reading makes ranks read large vectors, even if copies are faster here.
var Reading = reading

// StayFar makes a rank take the cores of the others for far. It returns a function that reports
// whether it still does.
func StayFar(t collective.Transport) (far func() bool) {
	p := t.(*Transport)
	p.distance = distance{far: true}
	slow := staging{far: true, timed: 2 * stagingKept}
	for range stagingKept {
		slow.perByte[0] = append(slow.perByte[0], 1e9)
	}
	p.staging = slow
	for i := range p.out {
		p.out[i].staging = slow
		p.out[i].staging.perByte[0] = slices.Clone(slow.perByte[0])
	}
	return func() bool {
		far := p.distance.far && p.staging.far
		for i := range p.out {
			far = far && p.out[i].staging.far && p.out[i].streamLeast == p.streamLeast
		}
		return far
	}
}

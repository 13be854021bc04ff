//go:build !race

package data

// raceDetector reports whether the race detector is on. It makes drawing about forty
// times slower.
const raceDetector = false

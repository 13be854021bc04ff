//go:build !race

package data

// raceDetector says that the detector makes drawing some forty times slower.
const raceDetector = false

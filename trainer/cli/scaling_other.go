//go:build !linux

package cli

// processorTimes is not known here.
func processorTimes() (processorTime, bool) { return processorTime{}, false }

//go:build !linux

package machine

// ProcessorTimes is not known here.
func ProcessorTimes() (ProcessorTime, bool) { return ProcessorTime{}, false }

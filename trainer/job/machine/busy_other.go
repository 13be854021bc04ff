//go:build !linux

package machine

// ProcessorTimes returns how busy the machine's processors have been since it booted. ok
// is false if the system does not report it.
func ProcessorTimes() (t ProcessorTime, ok bool) { return ProcessorTime{}, false }

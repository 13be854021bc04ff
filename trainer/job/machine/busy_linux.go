package machine

import "os"

// ProcessorTimes returns how busy the machine's processors have been since it booted. ok
// is false if the system does not report it.
func ProcessorTimes() (t ProcessorTime, ok bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return ProcessorTime{}, false
	}
	return parseProcessorTime(string(text))
}

package cli

import "os"

// processorTimes asks the kernel how busy the machine's processors have been.
func processorTimes() (processorTime, bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return processorTime{}, false
	}
	return parseProcessorTime(string(text))
}
